//! Batches of steps in the middle of their sagas: each saga moves on, its step is recorded, its work row is deleted, and
//! the command of its next step is inserted.

use saga_core::store::Claim;
use saga_sqlite::SqliteStore;
use saga_testkit::hot_path::{self, Bound, Cost as _};
use tempfile::TempDir;

use crate::cost::Cost;
use crate::meter::Meter;
use crate::support::{self, Body, Gate, all, keep, write_note};

/// The sizes that are measured.
const SIZES: [u64; 3] = [1, 16, 50];

/// What a batch costs whose handlers need no savepoints.
///
/// - Of the batch: `BEGIN` and `COMMIT`, one commit. The pages: one each of the business table, the work rows, the sagas'
///   progress, the step records and what orders them.
/// - Of a step: its own statement, the claim, the deletion of its work row, its record, the saga's progress, and the next
///   command.
const SPARED: Bound<Cost> = Bound {
    batch: Cost { commits: 1, statements: 2, pages: 6 },
    each: Cost { commits: 0, statements: 6, pages: 0 },
    // So many steps share a page that none of them would change alone.
    together: Some((10, Cost { commits: 0, statements: 0, pages: 1 })),
};

/// What a batch costs whose handlers run behind savepoints: each one is set and released. The first is that of the call.
const WITH_SAVEPOINTS: Bound<Cost> = Bound { each: Cost { statements: 8, ..SPARED.each }, ..SPARED };

/// What the gate adds that holds calls together: the savepoint of its own call.
const GATE: Cost = Cost { commits: 0, statements: 2, pages: 0 };

#[tokio::test]
async fn a_batch_without_savepoints_costs_no_more_than_this() {
    let mut steps = Steps::warm(true).await;
    for size in SIZES {
        let cost = steps.batch(size, 1).await;
        cost.assert_within(&SPARED.of(size), &format!("a batch of {size}"));
    }
}

#[tokio::test]
async fn a_batch_behind_savepoints_costs_no_more_than_this() {
    let mut steps = Steps::warm(false).await;
    for size in SIZES {
        let cost = steps.batch(size, 1).await;
        cost.assert_within(&WITH_SAVEPOINTS.of(size), &format!("a batch of {size} behind savepoints"));
    }
}

#[tokio::test]
async fn calls_that_share_a_commit_cost_no_more_than_one_call() {
    let mut steps = Steps::warm(true).await;
    for size in SIZES {
        let cost = steps.group(size, 1).await;
        cost.assert_within(&(SPARED.of(size) + GATE), &format!("a group of {size}"));
    }
}

/// Each bound is exceeded by a path that is heavier in one way.
#[tokio::test]
async fn a_heavier_path_is_above_the_bounds() {
    const SIZE: u64 = 16;
    let mut steps = Steps::warm(true).await;
    let mut one_by_one = Cost::default();
    for _ in 0..SIZE {
        one_by_one = one_by_one + steps.batch(1, 1).await;
    }
    assert_eq!(one_by_one.above(&SPARED.of(SIZE)), ["commits", "statements", "pages"]);
    assert_eq!(steps.batch(SIZE, 2).await.above(&SPARED.of(SIZE)), ["statements"]);
    assert_eq!(steps.group(SIZE, 2).await.above(&(SPARED.of(SIZE) + GATE)), ["statements"]);

    let mut steps = Steps::warm(false).await;
    assert_eq!(steps.batch(SIZE, 1).await.above(&SPARED.of(SIZE)), ["statements"]);
    assert_eq!(steps.batch(SIZE, 2).await.above(&WITH_SAVEPOINTS.of(SIZE)), ["statements"]);
}

/// Steps whose handlers need savepoints or do not.
struct Steps {
    store: SqliteStore,
    meter: Meter,
    begun: hot_path::Steps,
    is_spared: bool,
    _folder: TempDir,
}

impl Steps {
    /// After so many runs everything is prepared.
    async fn warm(is_spared: bool) -> Self {
        const RUNS: usize = 3;
        let (folder, store) = support::store().await;
        let (meter, begun) = (Meter::new(&store).await, hot_path::Steps::new(&store).await);
        let mut steps = Self { store, meter, begun, is_spared, _folder: folder };
        for _ in 0..RUNS {
            steps.batch(2, 1).await;
        }
        steps
    }

    /// What so many steps cost in one call of the store. Each handler writes so many rows.
    async fn batch(&mut self, steps: u64, rows: u32) -> Cost {
        let claims = self.begun.claims(&self.store, steps).await;
        let body = self.body(&claims, rows).await;
        self.meter.of(async { body.transact(&self.store).await.unwrap() }).await
    }

    /// What so many calls of one step each cost in one group, with the gate that holds them together.
    async fn group(&mut self, steps: u64, rows: u32) -> Cost {
        let mut bodies = Vec::new();
        for claim in self.begun.claims(&self.store, steps).await {
            bodies.push(self.body(&[claim], rows).await);
        }
        let run = async {
            let gate = Gate::shut(&self.store).await;
            let answers = all(bodies.into_iter().map(|body| body.transact(&self.store)), gate.open()).await;
            assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        };
        self.meter.of(run).await
    }

    async fn body(&self, claims: &[Claim], rows: u32) -> Body {
        let body = Body::new(claims).records(self.begun.advanced(&self.store, claims).await);
        let body = if self.is_spared { body.spared() } else { body };
        let write = move |conn: &mut rusqlite::Connection| {
            keep(&(0..rows).try_for_each(|_| write_note(conn, "note").map(drop)))
        };
        claims.iter().fold(body, |body, _| body.then_now(write))
    }
}
