//! Batches of steps in the middle of their sagas: each saga moves on, its step is recorded, its work row is deleted, and
//! the command of its next step is inserted.

use std::time::Duration;

use saga_core::store::{Claim, Ids as _, Lease, WorkId};
use saga_sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

use crate::cost::{Bound, Cost};
use crate::meter::Meter;
use crate::support::{Body, Gate, advanced, all, begun, create_notes, keep, member, write_note};

/// The sizes that are measured.
const SIZES: [u64; 3] = [1, 16, 50];

/// What a batch costs whose steps were clean lately.
///
/// - Of the batch: `BEGIN` and `COMMIT`, one commit. The pages: one each of the business table, the work rows, the sagas'
///   progress, the step records and what orders them.
/// - Of a step: its own statement, the claim, the deletion of its work row, its record, the saga's progress, and the next
///   command.
const TRUSTED: Bound = Bound {
    batch: Cost { commits: 1, statements: 2, pages: 6 },
    step: Cost { commits: 0, statements: 6, pages: 0 },
    steps_per_page: 10,
};

/// What a batch costs whose handlers run behind savepoints: each one is set and released, and so is one for all of the
/// call.
const WITH_SAVEPOINTS: Bound =
    Bound { batch: Cost { statements: 4, ..TRUSTED.batch }, step: Cost { statements: 8, ..TRUSTED.step }, ..TRUSTED };

/// What the gate adds that holds calls together: the savepoint of its own call.
const GATE: Cost = Cost { commits: 0, statements: 2, pages: 0 };

#[tokio::test]
async fn a_batch_of_trusted_steps_costs_no_more_than_this() {
    let mut steps = Steps::warm(1).await;
    for size in SIZES {
        let cost = steps.batch(size, 1).await;
        cost.assert_within(&TRUSTED.of(size), &format!("a batch of {size}"));
    }
}

#[tokio::test]
async fn a_batch_behind_savepoints_costs_no_more_than_this() {
    let mut steps = Steps::warm(u32::MAX).await;
    for size in SIZES {
        let cost = steps.batch(size, 1).await;
        cost.assert_within(&WITH_SAVEPOINTS.of(size), &format!("a batch of {size} behind savepoints"));
    }
}

#[tokio::test]
async fn calls_that_share_a_commit_cost_no_more_than_one_call() {
    let mut steps = Steps::warm(1).await;
    for size in SIZES {
        let cost = steps.group(size, 1).await;
        cost.assert_within(&(TRUSTED.of(size) + GATE), &format!("a group of {size}"));
    }
}

/// Each bound is exceeded by a path that is heavier in one way.
#[tokio::test]
async fn a_heavier_path_is_above_the_bounds() {
    const SIZE: u64 = 16;
    let mut steps = Steps::warm(1).await;
    let mut one_by_one = Cost::default();
    for _ in 0..SIZE {
        one_by_one = one_by_one + steps.batch(1, 1).await;
    }
    assert_eq!(one_by_one.above(&TRUSTED.of(SIZE)), ["commits", "statements", "pages"]);
    assert_eq!(steps.batch(SIZE, 2).await.above(&TRUSTED.of(SIZE)), ["statements"]);
    assert_eq!(steps.group(SIZE, 2).await.above(&(TRUSTED.of(SIZE) + GATE)), ["statements"]);

    let mut steps = Steps::warm(u32::MAX).await;
    assert_eq!(steps.batch(SIZE, 1).await.above(&TRUSTED.of(SIZE)), ["statements"]);
    assert_eq!(steps.batch(SIZE, 2).await.above(&WITH_SAVEPOINTS.of(SIZE)), ["statements"]);
}

/// Steps of sagas that are begun one by one.
struct Steps {
    store: SqliteStore,
    meter: Meter,
    lease: Lease,
    begun: u64,
    _folder: TempDir,
}

impl Steps {
    /// After so many runs everything is prepared, and a step that can be trusted is.
    async fn warm(trusted_after: u32) -> Self {
        const RUNS: usize = 3;
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(folder.path().join("orders.db")).trusted_after(trusted_after);
        let store = SqliteStore::open_with(options).await.unwrap();
        create_notes(&store).await;
        let lease = member(&store, Duration::from_hours(1)).await;
        let meter = Meter::new(&store).await;
        let mut steps = Self { store, meter, lease, begun: 0, _folder: folder };
        for _ in 0..RUNS {
            steps.batch(2, 1).await;
        }
        steps
    }

    /// What so many steps cost in one call of the store. Each handler writes so many rows.
    async fn batch(&mut self, steps: u64, rows: u32) -> Cost {
        let claims = self.claims(steps).await;
        let body = self.body(&claims, rows).await;
        self.meter.of(async { body.transact(&self.store).await.unwrap() }).await
    }

    /// What so many calls of one step each cost in one group, with the gate that holds them together.
    async fn group(&mut self, steps: u64, rows: u32) -> Cost {
        let mut bodies = Vec::new();
        for claim in self.claims(steps).await {
            bodies.push(self.body(&[claim], rows).await);
        }
        let run = async {
            let gate = Gate::shut(&self.store).await;
            let answers = all(bodies.into_iter().map(|body| body.transact(&self.store)), gate.open()).await;
            assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        };
        self.meter.of(run).await
    }

    async fn claims(&mut self, steps: u64) -> Vec<Claim> {
        let mut claims = Vec::new();
        for _ in 0..steps {
            self.begun += 1;
            claims.push(begun(&self.store, &format!("k-{}", self.begun)).await);
        }
        claims
    }

    async fn body(&self, claims: &[Claim], rows: u32) -> Body {
        let ids = self.store.reserve_ids(u32::try_from(claims.len()).unwrap()).await.unwrap();
        let advanced = claims.iter().zip(ids).map(|(claim, id)| advanced(claim, WorkId(id), self.lease)).collect();
        let body = Body::new(claims).records(advanced);
        let write =
            move |conn: &mut rusqlite::Connection| keep((0..rows).try_for_each(|_| write_note(conn, "note").map(drop)));
        claims.iter().fold(body, |body, _| body.then(write))
    }
}
