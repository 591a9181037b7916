//! Whole sagas through the runtime, with one transaction under way at a time: the callers wait for each other, so that
//! the batches are the same in every run.

use std::time::Duration;

use rusqlite::Connection;
use saga_core::{Outcome, Runtime, Saga, Settings, StepError, saga_step};
use saga_sqlite::{SqliteOptions, SqliteStore};
use tokio::task::JoinSet;

use crate::cost::Cost;
use crate::meter::Meter;
use crate::support::{create_notes, write_note};

/// Nothing of the runtime's own falls into what is measured.
const QUIET: Duration = Duration::from_hours(6);
/// Sagas in flight.
const IN_FLIGHT: u32 = 16;
/// So many times all of them, so that a batch that is not full shows.
const ROUNDS: u32 = 4;

#[saga_step(no_compensation)]
async fn reserve_stock(tx: &mut Connection, order: u32) -> Result<u32, StepError> {
    write_note(tx, "reserved")?;
    Ok(order)
}

#[saga_step(no_compensation)]
async fn charge_card(tx: &mut Connection, order: u32) -> Result<u32, StepError> {
    write_note(tx, "charged")?;
    Ok(order)
}

#[saga_step(no_compensation)]
async fn confirm_order(tx: &mut Connection, order: u32) -> Result<u32, StepError> {
    write_note(tx, "confirmed")?;
    Ok(order)
}

/// What a batch of whole sagas costs: `BEGIN`, `COMMIT` and a page or two of each table; of a saga its steps' own three
/// statements, its row, its progress, and three step records.
const BATCH: Cost = Cost { commits: 1, statements: 2, pages: 12 };
/// The statements of one saga.
const SAGA_STATEMENTS: u64 = 8;

#[tokio::test]
async fn sagas_that_run_together_cost_no_more_than_this() {
    cost(|_| ()).await.assert_within(&bound(), "sagas");
}

/// The bound is exceeded where each step has a commit of its own, and where each saga has.
#[tokio::test]
async fn a_heavier_path_is_above_the_bound() {
    let all = ["commits", "statements", "pages"];
    assert_eq!(cost(|settings| settings.run_on_max = 1).await.above(&bound()), all);
    assert_eq!(cost(|settings| settings.batch_max = 1).await.above(&bound()), all);
}

fn bound() -> Cost {
    let rounds = u64::from(ROUNDS);
    Cost {
        commits: rounds * BATCH.commits,
        statements: rounds * (BATCH.statements + u64::from(IN_FLIGHT) * SAGA_STATEMENTS),
        pages: rounds * BATCH.pages,
    }
}

/// Runs the sagas, and answers what they cost after the first of them.
async fn cost(change: impl FnOnce(&mut Settings)) -> Cost {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("orders.db")).trusted_after(1);
    let store = SqliteStore::open_with(options).await.unwrap();
    create_notes(&store).await;
    let meter = Meter::new(&store).await;
    let saga: Saga<SqliteStore, u32> = Saga::named("create-order")
        .input::<u32>()
        .step::<reserve_stock>()
        .step::<charge_card>()
        .step::<confirm_order>()
        .build()
        .unwrap();
    let builder = Runtime::builder(store).saga(&saga).settings(|settings| {
        (settings.transactions, settings.batch_max) = (1, IN_FLIGHT as usize);
        (settings.poll_interval, settings.answer_within) = (QUIET, QUIET);
        (settings.member_ttl, settings.lease_ttl) = (3 * QUIET, 3 * QUIET);
        change(settings);
    });
    let runtime = builder.start().await.unwrap();
    // The steps are trusted, and a first step is known to be quick.
    run(&runtime, &saga, 0..2, 1).await;
    run(&runtime, &saga, 2..2 + IN_FLIGHT, IN_FLIGHT).await;
    let cost = meter.of(run(&runtime, &saga, 1_000..1_000 + ROUNDS * IN_FLIGHT, IN_FLIGHT)).await;
    runtime.shutdown().await;
    cost
}

/// Brings the orders to their end, so many at a time.
async fn run(
    runtime: &Runtime<SqliteStore>,
    saga: &Saga<SqliteStore, u32>,
    orders: std::ops::Range<u32>,
    at_a_time: u32,
) {
    let orders: Vec<u32> = orders.collect();
    for orders in orders.chunks(at_a_time as usize) {
        let mut callers = JoinSet::new();
        for order in orders.iter().copied() {
            let (runtime, saga) = (runtime.clone(), saga.clone());
            callers.spawn(async move {
                let running = runtime.start(&saga, format!("order-{order}"), order).await.unwrap();
                assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
            });
        }
        callers.join_all().await;
    }
}
