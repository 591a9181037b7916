//! What a step costs the engine, in allocations and not in time: sagas of three steps that write nothing, on the store in
//! memory. This fails when the hot path gets heavier, and shows that it can fail. It is a test binary of its own, since it
//! counts what all of its process allocates.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::alloc::System;
use std::hint::black_box;
use std::ops::Range;
use std::time::Duration;

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Entity, Outcome, Runtime, Saga, Settings, StepError, saga_step};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::task::JoinSet;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Nothing of the runtime's own falls into what is counted.
const QUIET: Duration = Duration::from_hours(6);
/// Sagas in flight, which share a transaction.
const IN_FLIGHT: u32 = 32;
/// How many sagas are counted.
const SAGAS: u32 = 20 * IN_FLIGHT;
/// The steps of one saga.
const STEPS: u32 = 3;

/// What a step may allocate, a third of what its saga does included: the call of the caller with its task, the saga's row
/// and first command, the input that is decoded for the handler, the output and the step record, and the state of the
/// machine. It is what was measured, and less than one more.
const PER_STEP: f64 = 22.0;

#[saga_step(no_compensation)]
async fn reserve_stock(_tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    Ok(order + 1)
}

#[saga_step(no_compensation)]
async fn charge_card(_tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    Ok(order + 2)
}

#[saga_step(no_compensation)]
async fn confirm_order(_tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    Ok(order + 3)
}

/// What a step that locks something may allocate: what a step may, and the entity, which is named when the transaction begins and
/// again when the step is the next one, with the request, its answer and what the function sees of it.
const PER_LOCKED_STEP: f64 = 57.5;

#[saga_step(no_compensation, lock = |order| Entity::new("stock", order))]
async fn reserve_locked(_tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    Ok(order + 1)
}

#[saga_step(no_compensation, lock = |order| Entity::new("card", order))]
async fn charge_locked(_tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    Ok(order + 2)
}

#[saga_step(no_compensation, lock = |order| Entity::new("order", order))]
async fn confirm_locked(_tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    Ok(order + 3)
}

/// The same, with allocations that nobody needs: one for each step of its saga.
#[saga_step(no_compensation)]
async fn confirm_order_wastefully(_tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    black_box([(); 3].map(|()| Box::new(order)));
    Ok(order + 3)
}

/// One test only: what another one does meanwhile, and be it to print its name, would be counted too. The bound is exceeded
/// by one allocation more in each step, and where each step has a transaction of its own.
#[test]
fn a_step_allocates_no_more_than_this_and_a_heavier_one_does() {
    let saga = Saga::named("create-order").input::<u32>();
    let wasteful = saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order_wastefully>();
    let ordinary_one = per_step(&ordinary(), |_| ());
    let wasteful_one = per_step(&wasteful.build().unwrap(), |_| ());
    let alone = per_step(&ordinary(), |settings| settings.steps_per_transaction_max = 1);
    let counted = format!("{ordinary_one:.1} allocations; wasteful {wasteful_one:.1}; alone {alone:.1}");
    assert!(ordinary_one <= PER_STEP, "a step got heavier: {counted}");
    assert!(ordinary_one > PER_STEP - 1.0, "a step got lighter, and the bound should follow: {counted}");
    assert!(wasteful_one > PER_STEP, "{counted}");
    assert!(alone > PER_STEP, "{counted}");
    let (locked, alone) =
        (per_step(&locked(), |_| ()), per_step(&locked(), |settings| settings.steps_per_transaction_max = 1));
    let counted = format!("{locked:.1} allocations of a step with a lock; alone {alone:.1}");
    assert!(locked <= PER_LOCKED_STEP, "a step with a lock got heavier: {counted}");
    assert!(locked > PER_LOCKED_STEP - 1.0, "a step with a lock got lighter, and the bound should follow: {counted}");
    assert!(alone > PER_LOCKED_STEP, "{counted}");
}

fn ordinary() -> Saga<MemoryStore, u32> {
    let saga = Saga::named("create-order").input::<u32>();
    saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order>().build().unwrap()
}

fn locked() -> Saga<MemoryStore, u32> {
    let saga = Saga::named("locked-order").input::<u32>();
    saga.step::<reserve_locked>().step::<charge_locked>().step::<confirm_locked>().build().unwrap()
}

/// The allocations of a step, on one thread, so that every run does the same.
fn per_step(saga: &Saga<MemoryStore, u32>, change: impl FnOnce(&mut Settings)) -> f64 {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    threads.block_on(async {
        let builder = Runtime::builder(MemoryStore::new()).saga(saga).settings(|settings| {
            settings.transactions_max = 1;
            (settings.poll_interval, settings.reply_timeout) = (QUIET, QUIET);
            (settings.member_ttl, settings.lease_ttl) = (3 * QUIET, 3 * QUIET);
            change(settings);
        });
        let runtime = builder.start().await.unwrap();
        // A first step is known to be quick after this, and the tables of all kinds have their size.
        run(&runtime, saga, 0..2 * IN_FLIGHT).await;
        let region = Region::new(ALLOCATOR);
        run(&runtime, saga, 1_000..1_000 + SAGAS).await;
        let counted = region.change();
        runtime.shutdown().await;
        #[expect(clippy::cast_precision_loss, reason = "a test allocates little")]
        let allocations = (counted.allocations + counted.reallocations) as f64;
        allocations / f64::from(SAGAS * STEPS)
    })
}

/// Brings the orders to their end, so many at a time.
async fn run(runtime: &Runtime<MemoryStore>, saga: &Saga<MemoryStore, u32>, mut orders: Range<u32>) {
    while !orders.is_empty() {
        let mut callers = JoinSet::new();
        for order in orders.by_ref().take(IN_FLIGHT as usize) {
            let (runtime, saga) = (runtime.clone(), saga.clone());
            callers.spawn(async move {
                let running = runtime.start(&saga, format!("order-{order}"), order).await.unwrap();
                assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
            });
        }
        callers.join_all().await;
    }
}
