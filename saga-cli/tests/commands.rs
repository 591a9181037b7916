//! The commands as an application mounts them: on a store in memory, with its own definitions.
#![allow(clippy::expect_used, reason = "a test ends where something fails that is not under test")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use saga_cli::{Admin, Command, OpenStore};
use saga_core::memory::MemoryStore;
use saga_core::store::{DeadLetterId, DeadLetterReason, DeadLetters as _, NewDeadLetter};
use saga_core::{Runtime, Saga, State, StepContext, StepError, Tenant, saga_compensation, saga_step};

/// The application's own command line.
#[derive(Parser)]
#[command(name = "shop")]
enum Cli {
    #[command(flatten)]
    Admin(Command),
}

/// The store of the application, and what its steps call.
#[derive(Clone, Default)]
struct Shop {
    store: MemoryStore,
    bank: Bank,
}

/// It gives money back only while it is open.
#[derive(Clone, Default)]
struct Bank(Arc<AtomicBool>);

impl OpenStore for Shop {
    type Store = MemoryStore;

    fn name(&self) -> String {
        "the shop".to_owned()
    }

    async fn open(&self) -> anyhow::Result<MemoryStore> {
        Ok(self.store.clone())
    }

    async fn open_read_only(&self) -> anyhow::Result<MemoryStore> {
        Ok(self.store.clone())
    }
}

#[saga_step(compensate = refund_card, retry(base = "1ms", cap = "1ms"))]
async fn charge_card(_ctx: &StepContext, cents: u32) -> Result<u32, StepError> {
    if cents == 13 { Err(StepError::not_sent("the gateway is away")) } else { Ok(cents) }
}

#[saga_compensation]
async fn refund_card(_ctx: &StepContext, _cents: u32, State(bank): State<Bank>) -> Result<(), StepError> {
    if bank.0.load(Ordering::Relaxed) { Ok(()) } else { Err(StepError::reject("the bank is closed")) }
}

#[saga_step]
async fn confirm_order(cents: u32) -> Result<(), StepError> {
    if cents > 100 { Err(StepError::reject("too dear")) } else { Ok(()) }
}

#[saga_step]
async fn announce_order(cents: u32) -> Result<(), StepError> {
    if cents == 50 { Err(StepError::reject("no paper")) } else { Ok(()) }
}

fn create_order() -> Saga<MemoryStore, u32> {
    let steps = Saga::named("create-order").input::<u32>().step::<charge_card>().step::<confirm_order>().pivot();
    steps.step::<announce_order>().build().expect("it is valid")
}

impl Shop {
    /// One order that completed, and three whose card cannot be refunded.
    async fn with_orders() -> Self {
        let shop = Self::default();
        shop.run_orders(&[("cheap", 5), ("dear-1", 101), ("dear-2", 102), ("dear-3", 103)]).await;
        shop
    }

    async fn run_orders(&self, orders: &[(&str, u32)]) {
        let runtime = self.runtime().await;
        for (key, cents) in orders {
            runtime.start(&create_order(), *key, *cents).await.expect("it is new").outcome().await.expect("it ends");
        }
        runtime.shutdown().await;
    }

    async fn runtime(&self) -> Runtime<MemoryStore> {
        let runtime = Runtime::builder(self.store.clone()).saga(&create_order()).state(self.bank.clone());
        runtime.start().await.expect("it starts")
    }

    /// Runs a command, and gives what it prints; an error as the application prints it.
    async fn run(&self, args: &[&str]) -> (ExitCode, String) {
        let Cli::Admin(command) = Cli::try_parse_from([&["shop"], args].concat()).expect("a command");
        let mut out = Vec::new();
        let admin = Admin::new("shop", self.clone()).saga(&create_order());
        let code = admin.run(&command, &mut out).await.unwrap_or_else(|error| {
            out = saga_cli::error_line(&error).into_bytes();
            ExitCode::from(2)
        });
        (code, String::from_utf8(out).expect("text"))
    }

    async fn says(&self, args: &[&str], code: u8, said: &str) -> String {
        let (found, out) = self.run(args).await;
        assert!(found == ExitCode::from(code) && out.contains(said), "{args:?}: {found:?}, no {said:?} in\n{out}");
        out
    }

    /// Does something to a saga as ann.
    async fn act(&self, args: &[&str], code: u8, said: &str) {
        self.says(&[args, &["--reason", "the bank called", "--by", "ann"]].concat(), code, said).await;
    }
}

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
    let runtime = shop.runtime().await;
    runtime.start(&create_order(), "unlucky", 13).await.expect("it is new");
    let is_failing = async || {
        let status = runtime.status("unlucky").await.expect("it can be read").expect("it was started");
        status.steps[0].failing
    };
    while !is_failing().await {
        tokio::task::yield_now().await;
    }
    runtime.shutdown().await;
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

#[tokio::test]
async fn dead_letters_are_listed_shown_and_discarded() {
    let shop = Shop::default();
    let letter = NewDeadLetter {
        id: DeadLetterId(17),
        fingerprint: [0; 32],
        tenant: Tenant::default(),
        reason: DeadLetterReason::Unreadable,
        detail: "it has no kind".to_owned(),
        source: "service:payments".to_owned(),
        headers: vec![("sent-by".to_owned(), "a\u{1b}[2J".to_owned())],
        payload: b"garbage".to_vec(),
        message: None,
        attempts: 0,
    };
    shop.store.add_dead_letters(vec![letter]).await.expect("it is kept");
    shop.says(&["dead-letters", "list"], 0, "17         open       unreadable").await;
    let shown = shop.says(&["dead-letters", "show", "17"], 0, "it is no whole message").await;
    assert!(shown.contains("garbage") && shown.contains(r"sent-by: a\u{1b}[2J"), "{shown}");
    shop.says(&["dead-letters", "show", "17", "--json"], 0, "\"detail\":\"it has no kind\"").await;
    shop.says(&["dead-letters", "show", "4711"], 2, "there is no dead letter 4711 in the shop").await;
    shop.says(&["dead-letters", "replay", "17"], 2, "it is no whole message").await;
    shop.says(&["dead-letters", "discard", "17", "--reason", "a test"], 0, "17 is discarded\n").await;
    shop.says(&["dead-letters", "list", "--json"], 0, "{\"dead_letters\":[]}\n").await;
    shop.says(&["dead-letters", "list", "--state", "discarded", "--json"], 0, "\"note\":\"a test\"").await;
}

#[tokio::test]
async fn an_outbox_without_messages_says_so() {
    let shop = Shop::default();
    shop.says(&["outbox", "list"], 0, "0 messages wait to be sent; 0 keys are parked\n").await;
    shop.says(&["outbox", "list", "--json"], 0, "\"waiting\":0").await;
    for args in [&["outbox", "release", "none"][..], &["outbox", "discard", "none", "--reason", "why"]] {
        shop.says(args, 2, "no key is parked for the message \"none\"; see: shop outbox list").await;
    }
}

#[test]
fn what_is_misspelt_is_refused() {
    for wrong in [
        &["retry", "dear-1"][..],
        &["retry", "dear-1", "--reason", "why", "--input", "{"],
        &["skip", "dear-1", "--reason", "why", "--outptu", "1"],
        &["force", "dear-1", "--reason", "why"],
        &["restart", "dear-1", "--reason", "why", "--new-key", "new"],
        &["bulk", "plan", "pause"],
        &["pause"],
        &["resume", "dear-1"],
        &["cancel", "dear-1", "--reasn", "why"],
        &["pause", "dear-1", "dear-2", "--reason", "why"],
        &["force", "dear-1", "--reason", "why", "--as", "stuck"],
        &["cancel", "--reason", "why"],
        &["bulk", "plan", "explode", "--out", "plan.json"],
        &["bulk", "run", "plan.json", "--reason", "why", "--per-second", "0"],
        &["audit", "--limit", "many"],
        &["list", "--status", "happy"],
        &["dead-letters", "discard", "17"],
    ] {
        assert!(Cli::try_parse_from([&["shop"], wrong].concat()).is_err(), "{wrong:?}");
    }
}

#[test]
fn each_command_has_a_help_page() {
    let help = |args: &[&str]| {
        let asked = Cli::try_parse_from([&["shop"], args, &["--help"]].concat());
        asked.err().expect("a page instead of a command").to_string()
    };
    for command in
        [&["retry"][..], &["skip"], &["force"], &["restart"], &["bulk", "plan"], &["bulk", "run"], &["audit"]]
    {
        assert!(help(command).contains("Usage: shop "), "{command:?}");
    }
    for command in ["pause", "resume", "cancel"] {
        let page = help(&[command]);
        assert!(page.contains("--reason <TEXT>") && page.contains("--by <NAME>"), "{page}");
    }
}
