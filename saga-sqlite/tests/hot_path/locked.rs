//! Whole sagas, each of whose steps locks something of its own.

use rusqlite::Connection;
use saga_core::{Entity, Saga, StepError, saga_step};
use saga_sqlite::SqliteStore;
use saga_testkit::hot_path::{Bound, Cost as _, assert_sagas_within};

use crate::cost::Cost;
use crate::sagas::{BATCH, bound_of, cost_of};
use crate::support::write_note;

#[saga_step(no_compensation, lock = |order| Entity::new("stock", order))]
async fn reserve_stock(tx: &mut Connection, order: i64) -> Result<i64, StepError> {
    write_note(tx, "reserved")?;
    Ok(order)
}

#[saga_step(no_compensation, lock = |order| Entity::new("card", order))]
async fn charge_card(tx: &mut Connection, order: i64) -> Result<i64, StepError> {
    write_note(tx, "charged")?;
    Ok(order)
}

#[saga_step(no_compensation, lock = |order| Entity::new("order", order))]
async fn confirm_order(tx: &mut Connection, order: i64) -> Result<i64, StepError> {
    write_note(tx, "confirmed")?;
    Ok(order)
}

/// The cost of a batch whose three steps lock free entities: that of a batch without locks, and the last token, read and written, with
/// its page. Two statements a step ask whether the step has the lock already, and whether the entity is free.
const LOCKED: Bound<Cost> = Bound {
    batch: Cost { statements: BATCH.batch.statements + 2, pages: BATCH.batch.pages + 1, ..BATCH.batch },
    each: Cost { statements: BATCH.each.statements + 6, ..BATCH.each },
    together: None,
};

#[tokio::test]
async fn sagas_whose_steps_lock_cost_no_commit_more() {
    let bound = bound_of(LOCKED);
    assert_sagas_within(&bound, async || cost_of(locked_order(), |_| ()).await).await;
}

/// The bound is exceeded where each step has a commit of its own.
#[tokio::test]
async fn locked_steps_with_their_own_commits_are_above_the_bound() {
    let cost = cost_of(locked_order(), |settings| settings.steps_per_transaction_max = 1).await;
    assert_eq!(cost.above(&bound_of(LOCKED)), ["commits", "statements", "pages"]);
}

fn locked_order() -> Saga<SqliteStore, i64> {
    let saga = Saga::named("locked-order").input::<i64>();
    saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order>().build().unwrap()
}
