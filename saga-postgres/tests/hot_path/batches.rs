//! One batch of steps in the middle of their sagas: each saga moves on, its step is recorded, its work row is deleted,
//! and the command of its next step is inserted.

use saga_core::store::HandlerVerdict;
use saga_postgres::PostgresStore;
use saga_testkit::hot_path::{self, Bound, Cost as _};
use sqlx::PgConnection;

use crate::cost::Cost;
use crate::meter::Meter;
use crate::support::{Body, keep};

/// The sizes that are measured. A batch of one carries its savepoint in the message that begins it.
const SIZES: [u64; 3] = [1, 16, 50];

/// What a batch costs whose handlers need no savepoints.
///
/// - Of the batch: one commit. Three statements that guard the session, `BEGIN` and five settings (all of them one
///   message), the savepoint of a lone step, the claim, the record, `COMMIT`. In the log the commit, and a little
///   room for pages that are new or split.
/// - Of a step: its own statement. In the log: two records of the business row and its key; the locks on the work row and
///   on the saga; the step record with its key; the work row that is deleted; the saga's progress; the next command with
///   its two keys.
const SPARED: Bound<Cost> = Bound {
    batch: Cost { commits: 1, statements: 13, round_trips: 4, wal_records: 5 },
    each: Cost { commits: 0, statements: 1, round_trips: 1, wal_records: 11 },
    together: None,
};

/// What a batch costs whose handlers run behind savepoints: of each step also the release of the one before, and a new one,
/// in one message.
const WITH_SAVEPOINTS: Bound<Cost> = Bound { each: Cost { statements: 3, round_trips: 2, ..SPARED.each }, ..SPARED };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_without_savepoints_costs_no_more_than_this() {
    let (mut meter, mut steps) = Steps::warm(true).await;
    for size in SIZES {
        let before = steps.store.statistics().without_savepoint;
        let cost = steps.cost(&mut meter, size, 1).await;
        assert_eq!(steps.store.statistics().without_savepoint, before + 1);
        cost.assert_within(&SPARED.of(size), &format!("a batch of {size}"));
    }
    steps.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_behind_savepoints_costs_no_more_than_this() {
    let (mut meter, mut steps) = Steps::warm(false).await;
    for size in SIZES {
        let cost = steps.cost(&mut meter, size, 1).await;
        cost.assert_within(&WITH_SAVEPOINTS.of(size), &format!("a batch of {size} behind savepoints"));
    }
    steps.store.close().await;
}

/// Each bound is exceeded by a path that is heavier in one way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heavier_path_is_above_the_bounds() {
    const SIZE: u64 = 16;
    let (mut meter, mut steps) = Steps::warm(true).await;
    let mut one_by_one = Cost::default();
    for _ in 0..SIZE {
        one_by_one = one_by_one + steps.cost(&mut meter, 1, 1).await;
    }
    assert_eq!(one_by_one.above(&SPARED.of(SIZE)), ["commits", "statements", "round trips", "WAL records"]);
    let one_row_more = steps.cost(&mut meter, SIZE, 2).await;
    assert_eq!(one_row_more.above(&SPARED.of(SIZE)), ["statements", "round trips", "WAL records"]);

    steps.is_spared = false;
    let with_savepoints = steps.cost(&mut meter, SIZE, 1).await;
    assert_eq!(with_savepoints.above(&SPARED.of(SIZE)), ["statements", "round trips"]);
    let one_row_more = steps.cost(&mut meter, SIZE, 2).await;
    assert_eq!(one_row_more.above(&WITH_SAVEPOINTS.of(SIZE)), ["statements", "round trips", "WAL records"]);
    steps.store.close().await;
}

/// Steps whose handlers need savepoints or do not.
struct Steps {
    store: PostgresStore,
    begun: hot_path::Steps,
    is_spared: bool,
}

impl Steps {
    /// After so many runs the session has everything prepared.
    async fn warm(is_spared: bool) -> (Meter, Self) {
        const RUNS: usize = 3;
        let meter = Meter::start().await;
        let store = meter.store(|options| options).await;
        let begun = hot_path::Steps::new(&store).await;
        let mut steps = Self { store, begun, is_spared };
        for _ in 0..RUNS {
            steps.batch(2, 1).await.transact(&steps.store).await.unwrap();
        }
        (meter, steps)
    }

    /// What one batch costs, each of whose handlers inserts so many rows.
    async fn cost(&mut self, meter: &mut Meter, steps: u64, rows: u32) -> Cost {
        let batch = self.batch(steps, rows).await;
        meter.of(&self.store, async { batch.transact(&self.store).await.unwrap() }).await
    }

    async fn batch(&mut self, steps: u64, rows: u32) -> Body {
        let claims = self.begun.claims(&self.store, steps).await;
        let body = Body::new(&claims).records(self.begun.advanced(&self.store, &claims).await);
        let body = if self.is_spared { body.spared() } else { body };
        claims.iter().fold(body, |body, _| body.then(move |conn| Box::pin(reserve(conn, rows))))
    }
}

/// The business part of a step: so many rows, a statement each.
async fn reserve(conn: &mut PgConnection, rows: u32) -> HandlerVerdict {
    let mut reserved = Ok(());
    for _ in 0..rows {
        let insert = "INSERT INTO reservations (amount) VALUES ($1)";
        reserved = reserved.and(sqlx::query(insert).bind(100_i64).execute(&mut *conn).await.map(drop));
    }
    keep(&reserved)
}
