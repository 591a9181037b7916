//! Whole sagas through the runtime.

use rusqlite::Connection;
use saga_core::{Saga, Settings, StepError, saga_step};
use saga_sqlite::SqliteStore;
use saga_testkit::hot_path::{Bound, Cost as _, WholeSagas, assert_sagas_within};

use crate::cost::Cost;
use crate::meter::Meter;
use crate::support::{self, write_note};

/// Sagas in flight.
const IN_FLIGHT: u32 = 16;
/// So many times all of them, so that a batch that is not full shows.
const ROUNDS: u32 = 4;

#[saga_step(no_compensation)]
pub(crate) async fn reserve_stock(tx: &mut Connection, order: i64) -> Result<i64, StepError> {
    write_note(tx, "reserved")?;
    Ok(order)
}

#[saga_step(no_compensation)]
pub(crate) async fn charge_card(tx: &mut Connection, order: i64) -> Result<i64, StepError> {
    write_note(tx, "charged")?;
    Ok(order)
}

#[saga_step(no_compensation)]
pub(crate) async fn confirm_order(tx: &mut Connection, order: i64) -> Result<i64, StepError> {
    write_note(tx, "confirmed")?;
    Ok(order)
}

/// What a batch of whole sagas costs: `BEGIN`, `COMMIT` and a page or two of each table, and of those that have the rows of
/// six hundred sagas one that is new or lies above them; of a saga its steps' own three statements, its row, its progress,
/// and three step records.
pub(crate) const BATCH: Bound<Cost> = Bound {
    batch: Cost { commits: 1, statements: 2, pages: 14 },
    each: Cost { commits: 0, statements: 8, pages: 0 },
    together: None,
};

#[tokio::test]
async fn sagas_that_run_together_cost_no_more_than_this() {
    assert_sagas_within(&bound(), async || cost(true, |_| ()).await).await;
}

/// The bound is exceeded where each step has a commit of its own, and where each saga has.
#[tokio::test]
async fn a_heavier_path_is_above_the_bound() {
    let all = ["commits", "statements", "pages"];
    assert_eq!(cost(false, |settings| settings.steps_per_transaction_max = 1).await.above(&bound()), all);
    assert_eq!(cost(false, |settings| settings.batch_max = 1).await.above(&bound()), all);
}

fn bound() -> Cost {
    bound_of(BATCH)
}

/// What the sagas may cost, in such batches.
pub(crate) fn bound_of(batch: Bound<Cost>) -> Cost {
    batch.of(u64::from(IN_FLIGHT)) * u64::from(ROUNDS)
}

/// Runs the sagas, and answers what they cost, where their steps need no savepoints or nobody waits for that.
async fn cost(is_spared: bool, change: impl FnOnce(&mut Settings)) -> Cost {
    cost_when(is_spared, create_order(), change).await
}

/// The same for other sagas, whose steps need no savepoints.
pub(crate) async fn cost_of(saga: Saga<SqliteStore, i64>, change: impl FnOnce(&mut Settings)) -> Cost {
    cost_when(true, saga, change).await
}

async fn cost_when(is_spared: bool, saga: Saga<SqliteStore, i64>, change: impl FnOnce(&mut Settings)) -> Cost {
    let (_folder, store) = support::store().await;
    let meter = Meter::new(&store).await;
    let mut sagas = WholeSagas::begin(store, saga, IN_FLIGHT, change).await;
    if is_spared {
        sagas.until_spared().await;
    }
    meter.empty_log();
    let cost = meter.of(sagas.rounds(ROUNDS)).await;
    sagas.shutdown().await;
    cost
}

pub(crate) fn create_order() -> Saga<SqliteStore, i64> {
    let saga = Saga::named("create-order").input::<i64>();
    saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order>().build().unwrap()
}
