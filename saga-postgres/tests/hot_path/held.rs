//! Whole sagas under a semantic lock each, which no other saga waits for.

use saga_core::{Entity, Saga, SemanticLock};
use saga_postgres::PostgresStore;
use saga_testkit::hot_path::{Bound, Cost as _, assert_sagas_within};

use crate::cost::Cost;
use crate::sagas::{BATCH, bound_of, charge_card, confirm_order, cost_of, reserve_stock};

struct Held;

impl SemanticLock for Held {
    const NAME: &'static str = "held";
}

/// The cost of a batch of sagas that have free entities until they end: that of a batch without locks, and one statement that takes all
/// locks. The step of the lock has a record and its key; the log has one record for every 32 tokens.
const HELD: Bound<Cost> = Bound {
    batch: Cost {
        statements: BATCH.batch.statements + 1,
        round_trips: BATCH.batch.round_trips + 1,
        wal_records: BATCH.batch.wal_records + 2,
        ..BATCH.batch
    },
    each: Cost { wal_records: BATCH.each.wal_records + 2, ..BATCH.each },
    together: Some((10, Cost { commits: 0, statements: 0, round_trips: 0, wal_records: 1 })),
};

#[tokio::test]
async fn sagas_under_a_semantic_lock_cost_a_statement_more_for_all_of_them() {
    let bound = bound_of(HELD);
    assert_sagas_within(&bound, async || cost_of(held_order(), |_| ()).await).await;
}

/// The bound is exceeded where a commit of its own grants the lock, as it does when another saga has the entity.
#[tokio::test]
async fn semantic_locks_that_are_asked_for_are_above_the_bound() {
    let cost = cost_of(held_order(), |settings| settings.steps_per_transaction_max = 1).await;
    assert_eq!(cost.above(&bound_of(HELD)), ["commits", "statements", "round trips", "WAL records"]);
}

fn held_order() -> Saga<PostgresStore, i64> {
    let saga = Saga::named("held-order").input::<i64>();
    let saga = saga.semantic_lock::<Held, _>(|order: &i64| Entity::new("order", order));
    saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order>().build().unwrap()
}
