//! An output that takes nothing more, as a file on a full disk.

use std::fs::OpenOptions;

use clap::Parser as _;
use saga_cli::{Admin, error_line};
use saga_core::Tenant;

use crate::shop::{Cli, Shop, create_order};

/// Each action is done, and its error says so.
#[tokio::test]
async fn an_action_whose_result_cannot_be_printed_is_not_reported_as_failed() {
    let shop = Shop::with_orders().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("plan.json");
    let plan = file.to_str().expect("text");
    shop.bury(17, Tenant::default(), "it has no kind").await;
    let released = shop.park(1, Tenant::default(), "the broker refused it").await.to_string();
    let discarded = shop.park(2, Tenant::default(), "the broker refused it").await.to_string();
    let restart = ["restart", "cheap", "--from", "confirm-order", "--new-key", "again"];
    for (args, said) in [
        (&restart[..], "cheap: again is started instead"),
        (&["pause", "again"], "again is paused: nothing new of it begins before `shop resume`"),
        (&["resume", "again"], "again goes on"),
        (&["retry", "dear-1"], "dear-1 is tried again"),
        (&["skip", "dear-2"], "dear-2 goes on behind what it was stuck at"),
        (&["force", "dear-3", "--as", "completed"], "dear-3 has ended as it is"),
        (&["pause", "dear-3"], "dear-3 is completed already"),
        (&["bulk", "plan", "pause", "--out", plan], "the plan is in "),
        (&["bulk", "run", plan, "--per-second", "1000"], " done, 0 done before, "),
        (&["dead-letters", "discard", "17"], "17 is discarded"),
        (&["outbox", "release", &released], "is tried again"),
        (&["outbox", "discard", &discarded], "is discarded"),
    ] {
        let takes_reason = !["plan", "release"].contains(&args[1]);
        let reason = if takes_reason { &["--reason", "a test"][..] } else { &[] };
        let Cli::Admin(command) = Cli::try_parse_from([&["shop"], args, reason].concat()).expect("a command");
        let mut out = OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let admin = Admin::new("shop", shop.clone()).saga(&create_order());
        let error = error_line(&admin.run(&command, &mut out).await.expect_err("nothing can be printed"));
        assert!(error.contains(said) && error.contains("could not be printed: No space left"), "{args:?}: {error}");
    }
    shop.says(&["list", "--status", "paused"], 0, "").await;
    shop.says(&["dead-letters", "list", "--state", "discarded"], 0, "17 ").await;
    shop.says(&["outbox", "list"], 0, "0 keys are parked").await;
    shop.says(&["audit"], 0, "pause by ").await;
}
