//! Crash exploration of a step that takes long: it is exclusive, reports how far it is, and is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::engine::RuntimeBuilder;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::Sagas as _;
use saga_core::{
    Key, Resolved, Saga, State, StepContext, StepError, Tenant, saga_compensation, saga_resolution, saga_step,
};
use saga_testkit::VirtualTime;
use saga_testkit::explore::{Ended, Explore, Explored, explore};

const ROWS: i64 = 3;

/// Somebody outside who takes rows, by the key of the step that brings them.
#[derive(Clone)]
struct Desk {
    store: MemoryStore,
    book: Arc<Mutex<Book>>,
    /// Whether a step says of every row that it was taken before it takes the first one.
    hurries: bool,
}

#[derive(Default)]
struct Book {
    taken: BTreeMap<String, BTreeSet<i64>>,
    closed: BTreeSet<String>,
    withdrawn: BTreeSet<String>,
    problems: Vec<String>,
}

impl Desk {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, key: &str, row: i64) -> Result<(), StepError> {
        let mut book = self.book();
        if book.withdrawn.contains(key) {
            return Err(StepError::reject("withdrawn"));
        }
        book.taken.entry(key.to_owned()).or_default().insert(row);
        Ok(())
    }

    /// What is taken without a gap.
    fn rows(&self, key: &str) -> i64 {
        let book = self.book();
        let taken = book.taken.get(key);
        (1..=ROWS).take_while(|row| taken.is_some_and(|taken| taken.contains(row))).count().try_into().unwrap_or(ROWS)
    }

    /// Waits until a report is written down, so that each is a boundary in every run.
    async fn is_written(&self, row: i64) {
        let Ok(key) = Key::new("explored") else { return };
        let report = row.to_string().into_bytes();
        loop {
            let stored = self.store.saga_with_steps(&Tenant::default(), &key).await;
            let work = stored.ok().flatten().map(|stored| stored.work).unwrap_or_default();
            if work.iter().any(|work| work.reported.as_ref().is_some_and(|reported| reported.progress == report)) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[saga_step(
    exclusive,
    resolve = find_export,
    compensate = withdraw,
    timeout = "4s",
    retry(attempts = 5, base = "100ms", cap = "1s"),
    on_exhausted = "compensate",
)]
async fn export(ctx: &StepContext, rows: i64, State(desk): State<Desk>) -> Result<i64, StepError> {
    let begun = ctx.progress::<i64>()?.unwrap_or(0);
    let taken = desk.rows(ctx.key());
    if taken < begun {
        desk.book().problems.push(format!("it goes on behind row {begun}, and {taken} were taken"));
    }
    if desk.hurries {
        // Whoever crashes behind one of them reports no further one, so that nothing was taken then.
        for row in begun + 1..=rows {
            ctx.report(&row)?;
            desk.is_written(row).await;
        }
    }
    for row in begun + 1..=rows {
        desk.take(ctx.key(), row)?;
        if !desk.hurries {
            ctx.report(&row)?;
            desk.is_written(row).await;
        }
    }
    desk.book().closed.insert(ctx.key().to_owned());
    Ok(rows)
}

#[saga_resolution]
async fn find_export(ctx: &StepContext, rows: i64, State(desk): State<Desk>) -> Result<Resolved<i64>, StepError> {
    let is_closed = desk.book().closed.contains(ctx.key());
    Ok(if is_closed { Resolved::Done(rows) } else { Resolved::NotDone })
}

#[saga_compensation]
async fn withdraw(
    ctx: &StepContext,
    _rows: i64,
    _exported: Option<i64>,
    State(desk): State<Desk>,
) -> Result<(), StepError> {
    let mut book = desk.book();
    book.taken.remove(ctx.original_key());
    book.withdrawn.insert(ctx.original_key().to_owned());
    Ok(())
}

#[saga_step]
async fn book_export(conn: &mut MemoryConn, rows: i64) -> Result<(), StepError> {
    conn.add("exported", rows)?;
    Ok(())
}

#[derive(Clone, Copy)]
enum Export {
    Sound,
    /// It reports what it has not done yet.
    Hurries,
}

#[async_trait]
impl Explore for Export {
    type Store = MemoryStore;
    type Input = i64;
    type World = Desk;

    fn saga(&self) -> Saga<MemoryStore, i64> {
        let saga = Saga::named("export").input().step::<export>().step::<book_export>().build();
        saga.unwrap_or_else(|error| panic!("{error}"))
    }

    fn input(&self) -> i64 {
        ROWS
    }

    async fn fresh(&self, time: &VirtualTime) -> Desk {
        Desk {
            store: MemoryStore::with_environment(time.environment()),
            book: Arc::default(),
            hurries: matches!(self, Self::Hurries),
        }
    }

    fn store(&self, desk: &Desk) -> Arc<MemoryStore> {
        Arc::new(desk.store.clone())
    }

    fn states(
        &self,
        desk: &Desk,
        runtime: RuntimeBuilder<Explored<MemoryStore>>,
    ) -> RuntimeBuilder<Explored<MemoryStore>> {
        runtime.state(desk.clone()).settings(|settings| settings.report_interval = Duration::ZERO)
    }

    async fn audit(&self, desk: &Desk, ended: &Ended) -> Result<(), String> {
        let exported = desk.store.read(|table| table.counter("exported"));
        let book = desk.book();
        let taken: usize = book.taken.values().map(BTreeSet::len).sum();
        let expected = if *ended == Ended::Completed { (3, 3) } else { (0, 0) };
        if !book.problems.is_empty() || (exported, taken) != expected {
            return Err(format!("{ended:?}, {exported} rows are booked, {taken} are taken, {:?}", book.problems));
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_goes_on_where_it_was_whatever_crashes() {
    let report = explore(Export::Sound).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    for boundary in [
        "before a report",
        "behind a report",
        "behind export",
        "before the record of export as done",
        "behind the record of export as done",
        "before export:undo",
    ] {
        assert!(report.boundaries().iter().any(|known| known == boundary), "{boundary}: {:#?}", report.boundaries());
    }
    assert!(report.completed() > 0 && report.compensated() > 0, "{report}");
}

/// What is reported before it is done is lost with the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_of_what_is_not_done_yet_is_found() {
    let failures = explore(Export::Hurries).await.expect_err("it goes on behind what it has not done");
    let is_found = |disturbance: &str| failures.broken.iter().any(|broken| broken.disturbance.contains(disturbance));
    assert!(is_found("crash behind a report"), "{failures}");
    assert!(failures.broken.iter().all(|broken| broken.problem.contains("it goes on behind row")), "{failures}");
}
