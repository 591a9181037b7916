//! Semantic locks on every store: what one saga may still undo, no other one uses.

use std::time::Duration;

use saga_core::engine::SemanticLocksFilter;
use saga_core::saga::SagaBuilder;
use saga_core::{
    Entity, Locked, Outcome, Output, Runtime, Saga, SemanticLock, Signal, StepError, Wait, saga_compensation, saga_step,
};
use saga_tests::Books;
use serde::{Deserialize, Serialize};

const ORDERS: u32 = 24;
const ACCOUNTS: u32 = 3;

struct Credit;

impl SemanticLock for Credit {
    const NAME: &'static str = "credit";
}

struct Stock;

impl SemanticLock for Stock {
    const NAME: &'static str = "stock";
}

#[derive(Serialize, Deserialize)]
struct Go;

impl Signal for Go {
    const NAME: &'static str = "go";
}

fn account(order: u32) -> u32 {
    order % ACCOUNTS
}

#[saga_step(no_compensation)]
async fn read_balance<S: Books>(tx: &mut S::Conn, order: u32) -> Result<i64, StepError> {
    S::add(tx, &format!("balance {}", account(order)), 0).await
}

/// Another saga that wrote meanwhile would be noticed here.
#[saga_step(compensate = take_back)]
async fn write_balance<S: Books>(
    tx: &mut S::Conn,
    order: u32,
    Output(read): Output<read_balance>,
    locked: Locked<Credit>,
) -> Result<i64, StepError> {
    let token = locked.token_of(&Entity::new("account", account(order)));
    let written = S::add(tx, &format!("balance {}", account(order)), 1).await?;
    if written != read + 1 || token.is_none() {
        S::add(tx, "torn", 1).await?;
    }
    Ok(written)
}

#[saga_compensation]
async fn take_back<S: Books>(tx: &mut S::Conn, order: u32, written: i64) -> Result<(), StepError> {
    let left = S::add(tx, &format!("balance {}", account(order)), -1).await?;
    if left != written - 1 {
        S::add(tx, "torn", 1).await?;
    }
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

async fn start<S: Books>(store: &S, saga: &Saga<S, u32>) -> Runtime<S> {
    Runtime::builder(store.clone()).saga(saga).start().await.unwrap()
}

async fn no_locks_are_left<S: Books>(runtime: &Runtime<S>) {
    let left = runtime.admin().query().semantic_locks(SemanticLocksFilter::default()).await.unwrap();
    assert_eq!(left, []);
}

/// G5: a saga never sees what another one has done and undoes later. All processes on the store take part.
async fn g5_what_may_be_undone_is_not_used<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let saga = named::<S>()
        .semantic_lock::<Credit, _>(|order: &u32| {
            [Entity::new("account", account(*order)), Entity::new("order", order)]
        })
        .step::<read_balance>()
        .step::<write_balance>()
        .step::<decide>()
        .build()
        .unwrap();
    let mut runtimes = Vec::new();
    for _ in 0..S::REPLICAS {
        runtimes.push(start(&store, &saga).await);
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
    assert_eq!(store.counter("torn").await, 0, "a saga used what another one had not ended");
    let mut balance = 0;
    for account in 0..ACCOUNTS {
        balance += store.counter(&format!("balance {account}")).await;
    }
    assert_eq!((completed, balance), (16, 16));
    no_locks_are_left(&runtimes[0]).await;
    for runtime in runtimes {
        runtime.shutdown().await;
    }
}

async fn until_it_is_at<S: Books>(runtime: &Runtime<S>, key: &str, step: &str) {
    loop {
        let status = runtime.status(key).await.unwrap().unwrap();
        let at = status.steps.iter().find(|known| known.step == step).unwrap();
        if at.phase_name == "waiting" && at.lock.as_ref().is_none_or(|lock| !lock.granted) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn of_two_sagas_that_wait_for_each_other_the_younger_turns_round<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let saga = named::<S>()
        .semantic_lock::<Credit, _>(|order: &u32| Entity::new("account", order))
        .wait_for::<Go>(Wait::without_limit())
        .semantic_lock::<Stock, _>(|order: &u32| Entity::new("account", 3 - order))
        .build()
        .unwrap();
    let runtime = start(&store, &saga).await;
    let old = runtime.start(&saga, "o-1", 1).await.unwrap();
    until_it_is_at(&runtime, "o-1", "go").await;
    let young = runtime.start(&saga, "o-2", 2).await.unwrap();
    until_it_is_at(&runtime, "o-2", "go").await;
    runtime.signal("o-2", "go", &Go).await.unwrap();
    until_it_is_at(&runtime, "o-2", "stock").await;
    runtime.signal("o-1", "go", &Go).await.unwrap();
    let outcome = young.outcome().await.unwrap();
    assert!(outcome.to_string().contains("deadlock with `o-1`"), "{outcome}");
    let outcome = old.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    no_locks_are_left(&runtime).await;
    runtime.shutdown().await;
}

/// G11: the process in which a saga began to wait is gone when its turn comes.
async fn g11_another_process_goes_on_with_a_saga_that_waited<S: Books>() {
    let (store, _kept) = S::fresh().await;
    let saga = named::<S>()
        .semantic_lock::<Credit, _>(|_: &u32| Entity::new("account", "ada"))
        .wait_for::<Go>(Wait::without_limit())
        .build()
        .unwrap();
    let runtime = start(&store, &saga).await;
    runtime.start(&saga, "o-1", 1).await.unwrap();
    until_it_is_at(&runtime, "o-1", "go").await;
    runtime.start(&saga, "o-2", 2).await.unwrap();
    until_it_is_at(&runtime, "o-2", "credit").await;
    runtime.shutdown().await;
    let runtime = start(&store, &saga).await;
    for key in ["o-1", "o-2"] {
        until_it_is_at(&runtime, key, "go").await;
        runtime.signal(key, "go", &Go).await.unwrap();
        let outcome = runtime.attach(key).await.unwrap().outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    }
    no_locks_are_left(&runtime).await;
    runtime.shutdown().await;
}

saga_tests::on_every_store! {
    g5_what_may_be_undone_is_not_used,
    of_two_sagas_that_wait_for_each_other_the_younger_turns_round,
    g11_another_process_goes_on_with_a_saga_that_waited,
}
