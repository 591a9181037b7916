//! Sagas are shown, acted on one by one, and by a plan.

use std::path::Path;
use std::sync::atomic::Ordering;

use clap::Parser as _;
use saga_cli::Admin;

use crate::shop::{Cli, ReadOnly, Shop, create_order};

#[tokio::test]
async fn sagas_are_listed_and_shown() {
    let shop = Shop::with_orders().await;
    assert_eq!(shop.says(&["list"], 0, "cheap").await.lines().count(), 4);
    let stuck = shop.says(&["list", "--status", "stuck"], 0, "dear-1").await;
    assert!(stuck.lines().count() == 3 && !stuck.contains("cheap"), "{stuck}");
    let shown = shop.says(&["show", "dear-1"], 0, "dear-1 (create-order version 1): stuck").await;
    assert!(shown.contains("the bank is closed") && shown.contains("too dear"), "{shown}");
    shop.says(&["show", "none"], 2, "there is no saga none in the shop").await;
    shop.says(&["show", "no key"], 2, "the key \"no key\"").await;
}

#[tokio::test]
async fn what_keeps_failing_is_listed_with_its_error() {
    let shop = Shop::with_orders().await;
    assert_eq!(shop.says(&["list", "--failing"], 0, "").await, "");
    shop.run_failing_order("unlucky", 13).await;
    let failing = shop.says(&["list", "--failing"], 0, "attempts: the gateway is away").await;
    assert!(failing.starts_with("unlucky") && failing.lines().count() == 2, "{failing}");
    shop.says(&["show", "unlucky"], 0, "the gateway is away (failing, tried again at").await;
}

#[tokio::test]
async fn a_stuck_saga_is_tried_again_passed_or_ended_and_the_audit_log_tells_it() {
    let shop = Shop::with_orders().await;
    shop.act(&["retry", "dear-1", "--revision", "1"], 2, "has moved since").await;
    shop.act(&["retry", "cheap"], 2, "cheap is completed: nothing of it is stuck").await;
    shop.act(&["retry", "dear-1"], 0, "dear-1 is tried again by the processes that work on the store\n").await;
    shop.act(&["skip", "dear-2"], 0, "dear-2 goes on behind what it was stuck at\n").await;
    shop.act(&["force", "dear-3", "--as", "completed"], 0, "dear-3 has ended as it is\n").await;
    shop.act(&["skip", "none"], 2, "there is no saga none in the shop").await;
    shop.bank.0.store(true, Ordering::Relaxed);
    let runtime = shop.runtime().await;
    for key in ["dear-1", "dear-2"] {
        runtime.attach(key).await.expect("it is there").closed().await.expect("it ends");
    }
    runtime.shutdown().await;
    assert_eq!(shop.says(&["list", "--status", "compensated"], 0, "dear-1").await.lines().count(), 2);
    let log = shop.says(&["audit"], 0, "retry by ann: the bank called").await;
    assert!(log.lines().count() == 3 && log.contains("dear-3                   force as completed by ann"), "{log}");
    let latest = shop.says(&["audit", "--json", "--limit", "1"], 0, "\"key\":\"dear-3\"").await;
    assert!(latest.lines().count() == 1 && latest.contains("\"by\":\"ann\""), "{latest}");
    assert_eq!(shop.says(&["audit", "--limit", "2"], 0, "dear-3").await.lines().count(), 2);
    shop.says(&["show", "dear-3"], 0, "operator: force as completed by ann: the bank called").await;
}

#[tokio::test]
async fn a_stuck_step_is_tried_again_with_an_input_that_fits() {
    let shop = Shop::default();
    shop.run_orders(&[("loud", 50)]).await;
    shop.act(&["retry", "loud", "--input", "{}"], 2, "this is no input of it").await;
    shop.act(&["retry", "loud", "--input", "51"], 0, "loud is tried again").await;
    let runtime = shop.runtime().await;
    runtime.attach("loud").await.expect("it is there").closed().await.expect("it ends");
    runtime.shutdown().await;
    shop.says(&["list", "--status", "completed"], 0, "loud").await;
}

#[tokio::test]
async fn what_does_not_fit_the_saga_is_refused() {
    let shop = Shop::with_orders().await;
    shop.act(&["skip", "cheap"], 2, "the saga is not stuck").await;
    shop.act(&["force", "cheap", "--as", "completed"], 2, "the saga is not stuck").await;
    shop.act(&["retry", "none"], 2, "there is no saga none in the shop").await;
    shop.act(&["force", "none", "--as", "completed"], 2, "there is no saga none in the shop").await;
    let restart = |from: &'static str, key: &'static str| ["restart", "cheap", "--from", from, "--new-key", key];
    shop.act(&restart("ship", "new"), 2, "it has no step `ship`; its steps are").await;
    shop.act(&restart("confirm-order", "cheap"), 2, "belongs to another saga").await;
    shop.bank.0.store(true, Ordering::Relaxed);
    shop.run_orders(&[("dear-4", 104)]).await;
    shop.act(&["restart", "dear-4", "--from", "confirm-order", "--new-key", "new"], 2, "its step `").await;
    shop.says(&["cancel", "dear-4", "--reason", "why"], 3, "dear-4 is undone already\n").await;
    for act in ["pause", "resume", "cancel"] {
        shop.says(&[act, "no body", "--reason", "why"], 2, "the key").await;
        shop.says(&[act, "none", "--reason", " "], 2, "give a reason").await;
        shop.says(&[act, "none", "--reason", "why", "--by", ""], 2, "needs a name").await;
    }
}

#[tokio::test]
async fn a_saga_is_paused_resumed_and_restarted_and_one_that_has_ended_is_left_alone() {
    let shop = Shop::with_orders().await;
    for act in ["pause", "resume", "cancel"] {
        shop.act(&[act, "cheap"], 3, "cheap is completed already\n").await;
        shop.act(&[act, "none"], 2, "there is no saga none in the shop").await;
    }
    let again = ["restart", "cheap", "--from", "confirm-order", "--new-key", "again"];
    shop.act(&again, 0, "cheap: again is started instead\n").await;
    shop.act(&again, 0, "cheap: again was started instead before\n").await;
    shop.act(&["restart", "none", "--from", "confirm-order", "--new-key", "new"], 2, "there is no saga none").await;
    shop.says(&["show", "again"], 0, "taken over from the saga").await;
    shop.act(&["cancel", "again"], 2, "its pivot `confirm-order` is under way or done").await;
    shop.act(&["pause", "again"], 0, "again is paused: nothing new of it begins before `shop resume`\n").await;
    shop.act(&["pause", "again"], 0, "again is paused already\n").await;
    shop.says(&["show", "again"], 0, ": paused by ann since ").await;
    shop.act(&["resume", "again"], 0, "again goes on; the processes that work on the store do what waited\n").await;
    shop.act(&["resume", "again"], 0, "again is not paused\n").await;
    shop.says(&["cancel", "again", "--reason", " "], 2, "give a reason").await;
}

#[tokio::test]
async fn a_plan_is_written_and_carried_out_once() {
    let shop = Shop::with_orders().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("plan.json");
    let plan = ["bulk", "plan", "force-compensated", "--status", "stuck", "--failed-step", "charge-card"];
    let file = file.to_str().expect("text");
    let plan = [&plan[..], &["--out", file]].concat();
    shop.says(&plan, 0, &format!("3 sagas; nothing is changed yet: shop bulk run {file} --reason TEXT\n")).await;
    shop.says(&plan, 2, "cannot write ").await;
    let run = ["bulk", "run", file, "--per-second", "1000"];
    shop.act(&["skip", "dear-2"], 0, "goes on").await;
    shop.act(&run, 1, "2 done, 0 done before, 1 refused, 0 failed\n").await;
    shop.act(&run, 1, "0 done, 2 done before, 1 refused, 0 failed\n").await;
    shop.act(&["bulk", "run", "none.json"], 2, "cannot read none.json: No such file").await;
    std::fs::write(Path::new(file), "{}").expect("a file");
    shop.act(&run, 2, "is no plan that `bulk plan` wrote").await;
}

/// On SQLite, a store that is opened to write waits for the process that works on it.
#[tokio::test]
async fn a_plan_about_idle_sagas_only_reads() {
    let shop = Shop::with_orders().await;
    let folder = tempfile::tempdir().expect("a folder");
    let admin = Admin::new("shop", ReadOnly(shop.clone())).saga(&create_order());
    let plan = async |number: u32, idle: &[&str]| {
        let file = folder.path().join(format!("plan-{number}.json")).display().to_string();
        let args = [&["shop", "bulk", "plan", "pause", "--out", &file], idle].concat();
        let Cli::Admin(command) = Cli::try_parse_from(args).expect("a command");
        let mut out = Vec::new();
        admin.run(&command, &mut out).await.expect("it succeeds");
        String::from_utf8(out).expect("text")
    };
    let none = plan(0, &["--idle-for", "60m"]).await;
    assert!(none.starts_with("0 sagas; "), "{none}");
    // A millisecond may not be over yet.
    let mut number = 1;
    while !plan(number, &["--idle-for", "1ms"]).await.contains("4 sagas") {
        number += 1;
    }
    let two = plan(number + 1, &["--idle-for", "1ms", "--status", "stuck", "--limit", "2"]).await;
    assert!(two.contains("2 sagas") && two.contains("dear-2") && !two.contains("cheap"), "{two}");
}

#[tokio::test]
async fn what_is_due_is_counted() {
    let shop = Shop::with_orders().await;
    shop.says(
        &["retention", "show"],
        0,
        "create-order             version 1    kept for ever, as far as is known here\n0 sagas are due\n",
    )
    .await;
    shop.says(&["retention", "show", "--json"], 0, "\"at_least\":false").await;
    shop.act(&["retention", "purge", "cheap"], 0, "cheap is deleted by the next pass").await;
    shop.says(&["retention", "show"], 0, "\n1 sagas are due\n").await;
}
