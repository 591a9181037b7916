//! One batch of steps in the middle of their sagas: each saga moves on, its step is recorded, its work row is deleted,
//! and the command of its next step is inserted.

use std::time::Duration;

use saga_core::store::{Ids as _, Lease, Verdict, WorkId};
use saga_postgres::PostgresStore;
use sqlx::PgConnection;

use crate::cost::{Bound, Cost};
use crate::meter::Meter;
use crate::support::{Body, advanced, begun, keep, member};

/// The sizes that are measured. A batch of one carries its savepoint in the message that begins it.
const SIZES: [u64; 3] = [1, 16, 50];

/// What a batch costs whose steps were clean lately.
///
/// - Of the batch: one commit. Three statements that guard the session, `BEGIN` and five settings (all of them one
///   message), the savepoint of a lone step, the claim, the record, `COMMIT`. In the log the commit, and a little
///   room for pages that are new or split.
/// - Of a step: its own statement. In the log: two records of the business row and its key; the locks on the work row and
///   on the saga; the step record with its key; the work row that is deleted; the saga's progress; the next command with
///   its two keys.
const TRUSTED: Bound = Bound {
    batch: Cost { commits: 1, statements: 13, round_trips: 4, wal_records: 5 },
    each: Cost { commits: 0, statements: 1, round_trips: 1, wal_records: 11 },
};

/// What a batch costs whose handlers run behind savepoints: of each step also the release of the one before, and a new one,
/// in one message.
const WITH_SAVEPOINTS: Bound =
    Bound { batch: TRUSTED.batch, each: Cost { statements: 3, round_trips: 2, ..TRUSTED.each } };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_trusted_steps_costs_no_more_than_this() {
    let mut meter = Meter::start().await;
    let mut steps = Steps::warm(meter.store(|options| options.trusted_after(1)).await).await;
    for size in SIZES {
        let before = steps.store.statistics().trusted;
        let cost = steps.cost(&mut meter, size, 1).await;
        assert_eq!(steps.store.statistics().trusted, before + 1);
        cost.assert_within(&TRUSTED.of(size), &format!("a batch of {size}"));
    }
    steps.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_behind_savepoints_costs_no_more_than_this() {
    let mut meter = Meter::start().await;
    let mut steps = Steps::warm(meter.store(|options| options.trusted_after(u32::MAX)).await).await;
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
    let mut meter = Meter::start().await;
    let mut steps = Steps::warm(meter.store(|options| options.trusted_after(1)).await).await;
    let mut one_by_one = Cost::default();
    for _ in 0..SIZE {
        one_by_one = one_by_one + steps.cost(&mut meter, 1, 1).await;
    }
    assert_eq!(one_by_one.above(&TRUSTED.of(SIZE)), ["commits", "statements", "round trips", "WAL records"]);
    let one_row_more = steps.cost(&mut meter, SIZE, 2).await;
    assert_eq!(one_row_more.above(&TRUSTED.of(SIZE)), ["statements", "round trips", "WAL records"]);
    steps.store.close().await;

    let mut steps = Steps::warm(meter.store(|options| options.trusted_after(u32::MAX)).await).await;
    let with_savepoints = steps.cost(&mut meter, SIZE, 1).await;
    assert_eq!(with_savepoints.above(&TRUSTED.of(SIZE)), ["statements", "round trips"]);
    let one_row_more = steps.cost(&mut meter, SIZE, 2).await;
    assert_eq!(one_row_more.above(&WITH_SAVEPOINTS.of(SIZE)), ["statements", "round trips", "WAL records"]);
    steps.store.close().await;
}

/// Steps of sagas that are begun one by one.
struct Steps {
    store: PostgresStore,
    lease: Lease,
    begun: u64,
}

impl Steps {
    /// After so many runs the session has everything prepared, and a step that can be trusted is.
    async fn warm(store: PostgresStore) -> Self {
        const RUNS: usize = 3;
        let lease = member(&store, Duration::from_hours(1)).await;
        let mut steps = Self { store, lease, begun: 0 };
        for _ in 0..RUNS {
            steps.batch(2, 1).await.transact(&steps.store).await.unwrap();
        }
        steps
    }

    /// What one batch costs, each of whose handlers inserts so many rows.
    async fn cost(&mut self, meter: &mut Meter, steps: u64, rows: u32) -> Cost {
        let batch = self.batch(steps, rows).await;
        meter.of(&self.store, async { batch.transact(&self.store).await.unwrap() }).await
    }

    async fn batch(&mut self, steps: u64, rows: u32) -> Body {
        let mut claims = Vec::new();
        for _ in 0..steps {
            self.begun += 1;
            // Other steps on the same server have keys of their own.
            let key = format!("k-{}-{}", self.lease.owner.0, self.begun);
            claims.push(begun(&self.store, &key).await);
        }
        let ids = self.store.reserve_ids(u32::try_from(claims.len()).unwrap()).await.unwrap();
        let advanced = claims.iter().zip(ids).map(|(claim, id)| advanced(claim, WorkId(id), self.lease)).collect();
        let body = Body::new(&claims).records(advanced);
        claims.iter().fold(body, |body, _| body.then(move |conn| Box::pin(reserve(conn, rows))))
    }
}

/// The business part of a step: so many rows, a statement each.
async fn reserve(conn: &mut PgConnection, rows: u32) -> Verdict {
    let mut reserved = Ok(());
    for _ in 0..rows {
        let insert = "INSERT INTO reservations (amount) VALUES ($1)";
        reserved = reserved.and(sqlx::query(insert).bind(100_i64).execute(&mut *conn).await.map(drop));
    }
    keep(&reserved)
}
