//! Leases: who may begin a call, what becomes of the work of processes that vanish or come back, and how fast.
//!
//! Time is tokio's paused clock, so that each figure is a count or a virtual time, the same on every machine.
#![cfg(feature = "macros")]

mod bank;
mod late;
mod late_events;
mod late_versions;

use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::store::{SagaFilter, Sagas as _, Status};
use saga_core::{Key, Outcome, Tenant};
use tokio::time::{Instant, sleep};

use self::bank::{Bank, Order, Process, charging, paying, process, settling};

const MEMBER_TTL: Duration = Duration::from_secs(10);

fn order(number: u32, millis: u64) -> Order {
    Order { number, millis, declined: false }
}

async fn count(store: &MemoryStore, status: Status) -> usize {
    let filter = SagaFilter { status: Some(status), limit: 10_000, ..SagaFilter::default() };
    store.list(&filter).await.unwrap().len()
}

/// Waits until so many sagas came to their end, or to a person.
async fn until_over(store: &MemoryStore, sagas: usize) {
    loop {
        let mut over = 0;
        for status in [Status::Completed, Status::Compensated, Status::Stuck] {
            over += count(store, status).await;
        }
        if over == sagas {
            return;
        }
        sleep(Duration::from_millis(500)).await;
    }
}

async fn pay_many(process: &Process, orders: impl IntoIterator<Item = Order>) {
    let orders = orders.into_iter().map(|order| (format!("order-{}", order.number), order));
    for started in process.runtime.start_many(&paying(), orders).await {
        started.unwrap();
    }
}

/// A process is cut off from its store, and another one takes its work over, does it, and undoes it. What the first one had
/// waiting never begins there, although its lease of a minute has not ended by its own clock.
#[tokio::test(start_paused = true)]
async fn g5_a_worker_taken_for_dead_begins_no_call() {
    let (store, bank) = (MemoryStore::new(), Bank::default());
    let first =
        process(&store, &Bank { loses_answers: true, ..bank.clone() }, |settings| settings.external_calls_max = 1)
            .await;
    let (began, running) = (Instant::now(), first.runtime.start(&paying(), "blocker", order(1, 28_000)).await.unwrap());
    let charge = first.runtime.start(&charging(), "order-1", order(1, 0)).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    first.way.cut();
    let second = process(&store, &Bank { refuses: true, ..bank.clone() }, |_| ()).await;
    sleep(Duration::from_secs(20)).await;
    let stored = store.saga(&Tenant::default(), &Key::new("order-1").unwrap()).await.unwrap().unwrap();
    assert_eq!(stored.status, Status::Compensated, "the second one took it over, and undid it");
    first.way.mend();
    drop(running);
    sleep((began + Duration::from_secs(45)).saturating_duration_since(Instant::now())).await;

    assert_eq!(bank.books().calls["order-1:charge"], 1, "the first one did not begin it");
    assert!(!bank.books().charged.contains("order-1:charge"), "a charge stands in a saga that was undone");
    let outcome = charge.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    second.runtime.shutdown().await;
}

/// A process dies with a step of four hours and twenty calls of a second. Who takes them over ends the calls at once.
#[tokio::test(start_paused = true)]
async fn g11_a_recovered_exclusive_step_holds_up_no_other() {
    let (store, bank) = (MemoryStore::new(), Bank::default());
    let first = process(&store, &bank, |_| ()).await;
    first.runtime.start(&settling(), "night", order(0, 4 * 3_600_000)).await.unwrap();
    pay_many(&first, (0..20).map(|number| order(number, 1_000))).await;
    sleep(Duration::from_millis(500)).await;
    assert_eq!(bank.books().under_way, 21);
    drop(first);

    let (second, began) = (process(&store, &bank, |_| ()).await, Instant::now());
    until_over(&store, 20).await;
    let took = began.elapsed();
    assert!(took < MEMBER_TTL + Duration::from_secs(5), "twenty calls of a second ended after {took:?}");
    assert_eq!(count(&store, Status::Running).await, 1, "the long one is under way");
    second.runtime.shutdown().await;
}

/// Two processes have thirty times as much to call as they have lines. They are as quick as their lines, every step is
/// called once, and a declined card is a declined card.
#[tokio::test(start_paused = true)]
async fn g5_an_overload_costs_no_more_than_its_calls() {
    const SAGAS: u32 = 4_000;
    let (store, bank) = (MemoryStore::new(), Bank::default());
    let replicas = [process(&store, &bank, |_| ()).await, process(&store, &bank, |_| ()).await];
    let orders = |from: u32| {
        let all = (0..SAGAS).filter(move |number| number % 2 == from);
        all.map(|number| Order { declined: number % 40 < 2, ..order(number, 10_000) })
    };
    let began = Instant::now();
    pay_many(&replicas[0], orders(0)).await;
    pay_many(&replicas[1], orders(1)).await;
    until_over(&store, SAGAS as usize).await;

    let took = began.elapsed();
    assert_eq!(count(&store, Status::Stuck).await, 0, "declined cards became stuck sagas");
    assert_eq!(count(&store, Status::Compensated).await, 200, "the declined cards");
    assert_eq!(bank.called(), SAGAS as usize);
    assert_eq!(bank.called_again(), 0, "each step is called once");
    assert_eq!(bank.books().most_under_way, 128);
    let ideal = Duration::from_secs(10) * SAGAS.div_ceil(128);
    println!("{SAGAS} sagas with calls of 10 s on 128 lines: {took:?}, ideal {ideal:?}");
    assert!(took < ideal.mul_f64(1.3), "it took {took:?}, and {ideal:?} would be ideal");
}

/// A process dies with a thousand sagas, of which 64 are being called. Only of these nobody knows what became of them.
#[tokio::test(start_paused = true)]
async fn g5_after_a_crash_only_what_was_called_is_unknown() {
    const SAGAS: u32 = 1_000;
    let (store, bank) = (MemoryStore::new(), Bank::default());
    let first = process(&store, &bank, |_| ()).await;
    let orders = (0..SAGAS).map(|number| Order { declined: number % 5 == 0, ..order(number, 500) });
    pay_many(&first, orders).await;
    sleep(Duration::from_millis(200)).await;
    drop(first);
    let called: Vec<String> = bank.books().calls.keys().cloned().collect();
    assert_eq!(called.len(), 64);

    let (second, began) = (process(&store, &bank, |_| ()).await, Instant::now());
    until_over(&store, SAGAS as usize).await;
    let took = began.elapsed();
    let is_declined = |key: &&String| {
        let number = key.strip_prefix("order-").and_then(|key| key.strip_suffix(":pay")).unwrap();
        number.parse::<u32>().unwrap() % 5 == 0
    };
    let doubtful = called.iter().filter(is_declined).count();
    assert_eq!(count(&store, Status::Stuck).await, doubtful, "stuck are those that had been called, and were declined");
    assert_eq!(bank.called_again(), 64);
    let ideal = Duration::from_millis(500) * SAGAS.div_ceil(64);
    println!(
        "{SAGAS} sagas of a dead process: {took:?}, of which {MEMBER_TTL:?} until it counts as dead; ideal {ideal:?}"
    );
    assert!(took <= ideal.mul_f64(1.5), "it took {took:?}, and {ideal:?} would be ideal");
    second.runtime.shutdown().await;
}

/// The store is away for longer than its members live. They come back with what they had: no step is called twice, and the
/// calls go on at once.
#[tokio::test(start_paused = true)]
async fn g5_an_outage_of_the_store_loses_no_claim() {
    const SAGAS: u32 = 1_280;
    let (store, bank) = (MemoryStore::new(), Bank::default());
    let replicas = [process(&store, &bank, |_| ()).await, process(&store, &bank, |_| ()).await];
    let orders = |from: u32| (0..SAGAS).filter(move |number| number % 2 == from).map(|number| order(number, 1_000));
    pay_many(&replicas[0], orders(0)).await;
    pay_many(&replicas[1], orders(1)).await;
    sleep(Duration::from_millis(2_500)).await;
    for replica in &replicas {
        replica.way.cut();
    }
    sleep(Duration::from_secs(13)).await;
    let called = bank.called();
    for replica in &replicas {
        replica.way.mend();
    }
    sleep(Duration::from_secs(2)).await;
    let since = bank.called() - called;
    assert!(since >= 128, "{since} calls began within two seconds");
    until_over(&store, SAGAS as usize).await;
    assert_eq!((count(&store, Status::Completed).await, bank.called_again()), (SAGAS as usize, 0));
}

/// What waits longer than a lease in the queue of a living process stays its own.
#[tokio::test(start_paused = true)]
async fn a_queued_command_is_kept_while_its_process_lives() {
    let (store, bank) = (MemoryStore::new(), Bank::default());
    let settings =
        |settings: &mut saga_core::Settings| (settings.external_calls_max, settings.lease_ttl) = (1, MEMBER_TTL);
    let first = process(&store, &bank, settings).await;
    first.runtime.start(&paying(), "blocker", order(0, 28_000)).await.unwrap();
    first.runtime.start(&paying(), "order-1", order(1, 0)).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let key = Key::new("order-1").unwrap();
    let row = async || store.saga_with_steps(&Tenant::default(), &key).await.unwrap().unwrap().work.remove(0);
    let before = row().await;
    assert!(before.owner.is_some(), "it waits in the queue of its process");
    let second = process(&store, &bank, |_| ()).await;
    sleep(Duration::from_secs(25)).await;
    let after = row().await;
    assert_eq!((after.work, after.owner), (before.work, before.owner));
    until_over(&store, 2).await;
    assert_eq!(bank.called_again(), 0);
    second.runtime.shutdown().await;
    first.runtime.shutdown().await;
}

/// A process takes a long queue while its calls are quick, and then they become slow. What another process can call
/// meanwhile is not kept from it.
#[tokio::test(start_paused = true)]
async fn g11_work_behind_calls_that_became_slow_is_left_to_others() {
    const QUICK: u32 = 1_000;
    const SLOW: u32 = 900;
    let (store, bank) = (MemoryStore::new(), Bank::default());
    let first = process(&store, &bank, |_| ()).await;
    pay_many(&first, (0..QUICK).map(|number| order(number, 10))).await;
    until_over(&store, QUICK as usize).await;
    let began = Instant::now();
    pay_many(&first, (QUICK..QUICK + SLOW).map(|number| order(number, 10_000))).await;
    let second = process(&store, &bank, |_| ()).await;
    until_over(&store, (QUICK + SLOW) as usize).await;

    let took = began.elapsed();
    let ideal = Duration::from_secs(10) * SLOW.div_ceil(128);
    println!("{SLOW} calls of 10 s on 128 lines: {took:?}, ideal {ideal:?}");
    assert!(took < ideal.mul_f64(1.4), "it took {took:?}, and {ideal:?} would be ideal");
    assert_eq!(bank.called_again(), 0);
    first.runtime.shutdown().await;
    second.runtime.shutdown().await;
}
