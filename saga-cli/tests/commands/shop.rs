//! An application that mounts the commands: orders on a store in memory.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use saga_cli::{Admin, Command, OpenStore};
use saga_core::memory::MemoryStore;
use saga_core::{Runtime, Saga, State, StepContext, StepError, Tenant, saga_compensation, saga_step};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// The application's own command line.
#[derive(Parser)]
#[command(name = "shop")]
pub(crate) enum Cli {
    #[command(flatten)]
    Admin(Command),
}

/// The store of the application, and what its steps call.
#[derive(Clone, Default)]
pub(crate) struct Shop {
    pub(crate) store: MemoryStore,
    pub(crate) bank: Bank,
}

/// What a partner answers who wants to control the terminal of an operator, and to forge a line.
pub(crate) const FROM_OUTSIDE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\nforged\u{9b}\u{202e}";

/// It gives money back only while it is open.
#[derive(Clone, Default)]
pub(crate) struct Bank(pub(crate) Arc<AtomicBool>);

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

/// The same store, which may only be read.
pub(crate) struct ReadOnly(pub(crate) Shop);

impl OpenStore for ReadOnly {
    type Store = MemoryStore;

    fn name(&self) -> String {
        self.0.name()
    }

    async fn open(&self) -> anyhow::Result<MemoryStore> {
        anyhow::bail!("it is opened to write")
    }

    async fn open_read_only(&self) -> anyhow::Result<MemoryStore> {
        self.0.open_read_only().await
    }
}

#[saga_step(compensate = refund_card, retry(base = "1ms", cap = "1ms"))]
async fn charge_card(_ctx: &StepContext, cents: u32) -> Result<u32, StepError> {
    match cents {
        13 => Err(StepError::not_sent("the gateway is away")),
        14 => Err(StepError::not_sent(FROM_OUTSIDE)),
        _ => Ok(cents),
    }
}

#[saga_compensation]
async fn refund_card(_ctx: &StepContext, cents: u32, State(bank): State<Bank>) -> Result<(), StepError> {
    match cents {
        _ if bank.0.load(Ordering::Relaxed) => Ok(()),
        666 => Err(StepError::reject(FROM_OUTSIDE)),
        _ => Err(StepError::reject("the bank is closed")),
    }
}

#[saga_step]
async fn confirm_order(cents: u32) -> Result<(), StepError> {
    if cents > 100 { Err(StepError::reject("too dear")) } else { Ok(()) }
}

#[saga_step]
async fn announce_order(cents: u32) -> Result<(), StepError> {
    if cents == 50 { Err(StepError::reject("no paper")) } else { Ok(()) }
}

pub(crate) fn create_order() -> Saga<MemoryStore, u32> {
    let steps = Saga::named("create-order").input::<u32>().step::<charge_card>().step::<confirm_order>().pivot();
    steps.step::<announce_order>().build().expect("it is valid")
}

impl Shop {
    /// One order that completed, and three whose card cannot be refunded.
    pub(crate) async fn with_orders() -> Self {
        let shop = Self::default();
        shop.run_orders(&[("cheap", 5), ("dear-1", 101), ("dear-2", 102), ("dear-3", 103)]).await;
        shop
    }

    pub(crate) async fn run_orders(&self, orders: &[(&str, u32)]) {
        self.run_orders_of(&Tenant::default(), orders).await;
    }

    pub(crate) async fn run_orders_of(&self, tenant: &Tenant, orders: &[(&str, u32)]) {
        let runtime = self.runtime().await;
        let of_tenant = runtime.tenant(tenant.clone());
        for (key, cents) in orders {
            of_tenant.start(&create_order(), *key, *cents).await.expect("it is new").outcome().await.expect("it ends");
        }
        drop(of_tenant);
        runtime.shutdown().await;
    }

    /// Starts an order whose card cannot be charged, and waits until it counts as failing.
    pub(crate) async fn run_failing_order(&self, key: &str, cents: u32) {
        let runtime = self.runtime().await;
        runtime.start(&create_order(), key, cents).await.expect("it is new");
        let is_failing = async || {
            let status = runtime.status(key).await.expect("it can be read").expect("it was started");
            status.steps[0].failing
        };
        while !is_failing().await {
            tokio::time::sleep(PAUSE).await;
        }
        runtime.shutdown().await;
    }

    pub(crate) async fn runtime(&self) -> Runtime<MemoryStore> {
        let runtime = Runtime::builder(self.store.clone()).saga(&create_order()).state(self.bank.clone());
        runtime.start().await.expect("it starts")
    }

    /// Runs a command, and gives what it prints; an error as the application prints it.
    pub(crate) async fn run(&self, args: &[&str]) -> (ExitCode, String) {
        let Cli::Admin(command) = Cli::try_parse_from([&["shop"], args].concat()).expect("a command");
        let mut out = Vec::new();
        let admin = Admin::new("shop", self.clone()).saga(&create_order());
        let code = admin.run(&command, &mut out).await.unwrap_or_else(|error| {
            out = saga_cli::error_line(&error).into_bytes();
            ExitCode::from(2)
        });
        (code, String::from_utf8(out).expect("text"))
    }

    pub(crate) async fn says(&self, args: &[&str], code: u8, said: &str) -> String {
        let (found, out) = self.run(args).await;
        assert!(found == ExitCode::from(code) && out.contains(said), "{args:?}: {found:?}, no {said:?} in\n{out}");
        out
    }

    /// Does something to a saga as ann.
    pub(crate) async fn act(&self, args: &[&str], code: u8, said: &str) {
        self.says(&[args, &["--reason", "the bank called", "--by", "ann"]].concat(), code, said).await;
    }
}
