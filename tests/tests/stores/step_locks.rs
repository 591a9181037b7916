//! Locks of steps on every store: calls for one entity follow each other, in all processes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::engine::SemanticLocksFilter;
use saga_core::saga::SagaBuilder;
use saga_core::{
    Entity, Locked, Outcome, Runtime, Saga, Signal, State, StepContext, StepError, Wait, saga_compensation, saga_step,
};
use saga_tests::Books;
use serde::{Deserialize, Serialize};

const ORDERS: u32 = 24;
const ACCOUNTS: u32 = 3;

#[derive(Serialize, Deserialize)]
struct Go;

impl Signal for Go {
    const NAME: &'static str = "go";
}

fn account(order: u32) -> Entity {
    Entity::new("account", order % ACCOUNTS)
}

/// A bank outside. It refuses a token below the highest that it saw of an account, and notes calls that overlap.
#[derive(Clone, Default)]
struct Bank(Arc<Mutex<BTreeMap<u32, Account>>>);

#[derive(Clone, Default)]
struct Account {
    balance: i64,
    highest: u64,
    is_called: bool,
    problems: u32,
}

impl Bank {
    /// Reads the balance, waits for others, and writes it.
    async fn add(&self, order: u32, token: u64, change: i64) {
        let account = order % ACCOUNTS;
        let balance = {
            let mut accounts = self.0.lock().unwrap();
            let account = accounts.entry(account).or_default();
            let is_late = std::mem::replace(&mut account.is_called, true) || token < account.highest;
            account.problems += u32::from(is_late);
            account.highest = token;
            account.balance
        };
        tokio::task::yield_now().await;
        let mut accounts = self.0.lock().unwrap();
        let account = accounts.entry(account).or_default();
        (account.balance, account.is_called) = (balance + change, false);
    }

    fn totals(&self) -> (i64, u32) {
        let accounts = self.0.lock().unwrap();
        let sum = |sum: (i64, u32), account: &Account| (sum.0 + account.balance, sum.1 + account.problems);
        accounts.values().fold((0, 0), sum)
    }
}

#[saga_step(compensate = refund, lock = |order| account(*order))]
async fn charge(order: u32, locked: Locked, State(bank): State<Bank>) -> Result<u64, StepError> {
    bank.add(order, locked.token(), 1).await;
    Ok(locked.token())
}

#[saga_compensation]
async fn refund(order: u32, _charged: Option<u64>, locked: Locked, State(bank): State<Bank>) -> Result<(), StepError> {
    bank.add(order, locked.token(), -1).await;
    Ok(())
}

/// A write in the store itself, with a lock of its own.
#[saga_step(compensate = unbook, lock = |order| Entity::new("ledger", order % ACCOUNTS))]
async fn book<S: Books>(tx: &mut S::Conn, order: u32, locked: Locked) -> Result<u64, StepError> {
    S::add(tx, &format!("ledger {}", order % ACCOUNTS), 1).await?;
    Ok(locked.token())
}

#[saga_compensation]
async fn unbook<S: Books>(tx: &mut S::Conn, order: u32, _booked: u64) -> Result<(), StepError> {
    S::add(tx, &format!("ledger {}", order % ACCOUNTS), -1).await?;
    Ok(())
}

/// Every third order is refused, and undone.
#[saga_step(no_compensation)]
async fn decide(order: u32) -> Result<(), StepError> {
    if order.is_multiple_of(3) { Err(StepError::reject("refused")) } else { Ok(()) }
}

fn named<S: Books>() -> SagaBuilder<S, u32> {
    Saga::named("order").input::<u32>()
}

async fn start<S: Books>(store: &S, saga: &Saga<S, u32>, bank: &Bank) -> Runtime<S> {
    Runtime::builder(store.clone()).saga(saga).state(bank.clone()).start().await.unwrap()
}

async fn no_locks_are_left<S: Books>(runtime: &Runtime<S>) {
    let left = runtime.admin().query().semantic_locks(SemanticLocksFilter::default()).await.unwrap();
    assert_eq!(left, []);
}

/// G5: calls for one account never overlap, and come with growing tokens. All processes on the store take part.
async fn g5_calls_for_one_entity_follow_each_other<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let bank = Bank::default();
    let saga = named::<S>().step::<charge>().step::<book>().step::<decide>().build().unwrap();
    let mut runtimes = Vec::new();
    for _ in 0..S::REPLICAS {
        runtimes.push(start(&store, &saga, &bank).await);
    }
    let mut running = Vec::new();
    for order in 0..ORDERS {
        let runtime = &runtimes[order as usize % runtimes.len()];
        running.push(runtime.start(&saga, format!("o-{order}"), order).await.unwrap());
    }
    let mut completed = 0;
    for saga in running {
        match saga.outcome().await.unwrap() {
            Outcome::Completed { .. } => completed += 1,
            other => assert!(other.to_string().contains("refused"), "{other}"),
        }
    }
    let mut ledger = 0;
    for account in 0..ACCOUNTS {
        ledger += store.counter(&format!("ledger {account}")).await;
    }
    assert_eq!((completed, bank.totals(), ledger), (16, (16, 0), 16));
    no_locks_are_left(&runtimes[0]).await;
    for runtime in runtimes {
        runtime.shutdown().await;
    }
}

/// It has its lock for as long as the signal is not there.
#[saga_step(no_compensation, lock = |_order: &u32| Entity::new("account", "ada"), timeout = "1m")]
async fn hold(ctx: &StepContext, order: u32, State(gate): State<Arc<tokio::sync::Semaphore>>) -> Result<(), StepError> {
    if order > 1 {
        return Ok(());
    }
    tokio::select! {
        _permit = gate.acquire() => Ok(()),
        () = ctx.cancelled() => Err(StepError::retry("the process ends")),
    }
}

async fn until_it_waits<S: Books>(runtime: &Runtime<S>, key: &str) {
    loop {
        let status = runtime.status(key).await.unwrap().unwrap();
        if status.steps[0].lock.as_ref().is_some_and(|lock| !lock.granted) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// G11: the process whose call has the lock ends, and so does the one in which another saga waits for it.
async fn g11_a_lock_outlives_its_process<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let saga = named::<S>().step::<hold>().wait_for::<Go>(Wait::without_limit()).build().unwrap();
    let start = || Runtime::builder(store.clone()).saga(&saga).state(Arc::clone(&gate)).start();
    let runtime = start().await.unwrap();
    runtime.start(&saga, "o-1", 1).await.unwrap();
    while runtime.status("o-1").await.unwrap().unwrap().steps[0].lock.is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    runtime.start(&saga, "o-2", 2).await.unwrap();
    until_it_waits(&runtime, "o-2").await;
    runtime.shutdown().await;
    let runtime = start().await.unwrap();
    until_it_waits(&runtime, "o-2").await;
    gate.add_permits(1);
    for key in ["o-1", "o-2"] {
        runtime.signal(key, "go", &Go).await.unwrap();
        let outcome = runtime.attach(key).await.unwrap().outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    }
    no_locks_are_left(&runtime).await;
    runtime.shutdown().await;
}

saga_tests::on_every_store! {
    g5_calls_for_one_entity_follow_each_other,
    g11_a_lock_outlives_its_process,
}
