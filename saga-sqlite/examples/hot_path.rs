//! Step transactions through the store, beside bare rusqlite doing the same writes.
//!
//! `cargo run --release -p saga-sqlite --example hot_path [sagas]` prints steps a second of both, and their ratio. Every
//! step writes one business row, its record, its saga's row, the finished work row and the next one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use saga_core::env::BoxFuture;
use saga_core::key::{Key, Tenant};
use saga_core::store::{
    Advance, Changes, Claim, Condition, DefinitionId, HandlerVerdict, Ids as _, Lease, Members as _, MovedSaga,
    NewRecord, NewSaga, NewWork, RecordedOutcome, SagaId, Sagas as _, Status, StepId, Store as _, TransactionBody,
    WorkId, WorkKind, WorkRef,
};
use saga_sqlite::SqliteStore;

const STEPS: u32 = 3;
const IN_FLIGHT: u32 = 64;
const GROUP: u32 = 50;
const STEP_NAMES: [&str; 3] = ["reserve-stock", "charge-card", "confirm-order"];
const BUSINESS: &str = "CREATE TABLE lines (id INTEGER PRIMARY KEY, saga INTEGER NOT NULL, text TEXT NOT NULL) STRICT";

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let sagas: u32 = std::env::args().nth(1).map_or(Ok(20_000), |sagas| sagas.parse())?;
    for round in 1..=3 {
        let folder = tempfile::Builder::new().prefix("saga-hot-path-").tempdir_in("target")?;
        let one = bare(&folder.path().join("one.db"), sagas / 5, 1).await?;
        let grouped = bare(&folder.path().join("grouped.db"), sagas, GROUP).await?;
        let (ours, commits) = through_the_store(&folder.path().join("store.db"), sagas).await?;
        println!(
            "round {round}: store {ours:.0} steps/s with {commits:.1} steps a commit; bare rusqlite {grouped:.0} with {GROUP}, {one:.0} with 1: \
             {:.2} of the one, {:.1} times the other",
            ours / grouped,
            ours / one,
        );
    }
    Ok(())
}

/// Steps a second through the store, and steps a commit.
async fn through_the_store(path: &Path, sagas: u32) -> Result<(f64, f64), Error> {
    let store = SqliteStore::open(path).await?;
    store.write(|conn| -> Result<(), Error> { Ok(conn.execute_batch(BUSINESS)?) }).await?;
    let owner = store.join(Duration::from_hours(1)).await?.member;
    let lease = Lease { owner, ttl: Duration::from_secs(30) };
    let next = Arc::new(AtomicU32::new(0));
    let before = store.statistics();
    let begun = now();
    let tasks: Vec<_> =
        (0..IN_FLIGHT).map(|_| tokio::spawn(work(store.clone(), lease, Arc::clone(&next), sagas))).collect();
    for task in tasks {
        task.await??;
    }
    let took = begun.elapsed().as_secs_f64();
    let commits = store.statistics().commits - before.commits;
    let steps = f64::from(sagas * STEPS);
    store.close().await;
    check(path, sagas)?;
    #[expect(clippy::cast_precision_loss, reason = "a count of commits is far below 2^52")]
    Ok((steps / took, steps / commits as f64))
}

async fn work(store: SqliteStore, lease: Lease, next: Arc<AtomicU32>, sagas: u32) -> Result<(), Error> {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= sagas {
            return Ok(());
        }
        let ids = store.reserve_ids(1 + STEPS).await?;
        let saga = SagaId(ids.start);
        let key = Key::new(format!("order-{number:08}"))?;
        let new = NewSaga {
            id: saga,
            tenant: Tenant::default(),
            key: key.clone(),
            definition: definition(),
            digest: [7; 32],
            input: vec![b'x'; 200],
            input_hash: vec![1; 33],
            status: Status::Running,
            state: vec![0; 60],
            commands: vec![command(saga, &key, ids.start + 1, 0, lease)],
            expiry: None,
        };
        store.start(vec![new]).await?;
        for step in 0..STEPS {
            let work = WorkRef { id: WorkId(ids.start + 1 + i64::from(step)), epoch: 1 };
            let claim = Claim {
                work,
                saga,
                tenant: Tenant::default(),
                key: key.clone(),
                step: StepId::doing(STEP_NAMES[step as usize]),
                kind: WorkKind::Do,
                start: None,
                locks: Vec::new(),
            };
            let body = Step { claim: claim.clone(), position: step, lease };
            store.transact(vec![claim], Box::new(body)).await?;
        }
    }
}

struct Step {
    claim: Claim,
    position: u32,
    lease: Lease,
}

impl TransactionBody<Connection> for Step {
    fn granted(&mut self, granted: &[bool]) {
        assert_eq!(granted, [true]);
    }

    fn time_limit(&self, _index: usize) -> Duration {
        Duration::from_secs(10)
    }

    fn run<'a>(&'a mut self, _index: usize, conn: &'a mut Connection) -> BoxFuture<'a, HandlerVerdict> {
        Box::pin(async move {
            match business(conn, self.claim.saga.0) {
                Ok(_) => HandlerVerdict::Keep,
                Err(_) => HandlerVerdict::RollBack,
            }
        })
    }

    fn changes(&mut self) -> Vec<Changes> {
        let claim = &self.claim;
        let record = NewRecord {
            saga: claim.saga,
            tenant: claim.tenant.clone(),
            key: claim.key.clone(),
            step: claim.step.clone(),
            outcome: RecordedOutcome::Done,
            output: Some(vec![b'x'; 100]),
            error: None,
            input: None,
            position: self.position,
            attempts: 1,
            took: Duration::ZERO,
        };
        let is_last = self.position + 1 == STEPS;
        let status = if is_last { Status::Completed } else { Status::Running };
        let next =
            (!is_last).then(|| command(claim.saga, &claim.key, claim.work.id.0 + 1, self.position + 1, self.lease));
        vec![Changes {
            saga: Some(Advance {
                id: claim.saga,
                expected: u64::from(self.position) + 1,
                status,
                state: vec![0; 60],
                expiry: None,
            }),
            finished: vec![(claim.work, Condition::Held)],
            records: vec![record],
            commands: next.into_iter().collect(),
            ..Changes::default()
        }]
    }

    fn decide_again(&mut self, _moved: Vec<MovedSaga>) -> Option<Vec<Changes>> {
        unreachable!("nobody else advances these sagas")
    }
}

fn definition() -> DefinitionId {
    DefinitionId { name: "create-order".into(), version: 1 }
}

fn command(saga: SagaId, key: &Key, id: i64, step: u32, lease: Lease) -> NewWork {
    NewWork {
        id: WorkId(id),
        saga,
        tenant: Tenant::default(),
        key: key.clone(),
        kind: WorkKind::Do,
        step: StepId::doing(STEP_NAMES[step as usize]),
        definition: definition(),
        payload: None,
        due_in: Duration::ZERO,
        lease: Some(lease),
        tried: None,
    }
}

fn business(conn: &Connection, saga: i64) -> rusqlite::Result<usize> {
    conn.prepare_cached("INSERT INTO lines (saga, text) VALUES (?1, ?2)")?.execute((saga, "a line of an order"))
}

/// Steps a second of bare rusqlite on the store's own schema, with so many steps in each commit.
async fn bare(path: &Path, sagas: u32, group: u32) -> Result<f64, Error> {
    let store = SqliteStore::open(path).await?;
    store.write(|conn| -> Result<(), Error> { Ok(conn.execute_batch(BUSINESS)?) }).await?;
    store.close().await;
    let conn = Connection::open(path)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY")?;
    conn.execute("INSERT INTO saga_definitions (id, name, version) VALUES (1, 'create-order', 1)", ())?;
    let begun = now();
    let mut pending = 0;
    for first in (0..sagas).step_by(IN_FLIGHT as usize) {
        for step in 0..STEPS {
            for number in first..sagas.min(first + IN_FLIGHT) {
                if pending == 0 {
                    conn.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
                }
                write_step(&conn, number, step)?;
                pending += 1;
                if pending == group {
                    conn.prepare_cached("COMMIT")?.execute(())?;
                    pending = 0;
                }
            }
        }
    }
    if pending > 0 {
        conn.execute_batch("COMMIT")?;
    }
    let took = begun.elapsed().as_secs_f64();
    drop(conn);
    check(path, sagas)?;
    Ok(f64::from(sagas * STEPS) / took)
}

fn write_step(conn: &Connection, number: u32, step: u32) -> rusqlite::Result<()> {
    let saga = i64::from(number) * 4 + 1;
    let key = format!("order-{number:08}");
    let name = STEP_NAMES[step as usize];
    if step == 0 {
        conn.prepare_cached(
            "INSERT INTO saga_sagas (id, tenant, key, definition, digest, input, input_hash, started_at) \
             VALUES (?1, '', ?2, 1, ?3, ?4, ?5, 1)",
        )?
        .execute((saga, &key, [7_u8; 32], [b'x'; 200].as_slice(), [1_u8; 33].as_slice()))?;
        conn.prepare_cached(
            "INSERT INTO saga_progress (id, status, version, state, advanced_at) VALUES (?1, 'running', 1, ?2, 1)",
        )?
        .execute((saga, [0_u8; 60].as_slice()))?;
        insert_work(conn, saga, &key, saga + 1, name)?;
    }
    business(conn, saga)?;
    conn.prepare_cached(
        "INSERT INTO saga_records (tenant, key, step, saga, outcome, position, attempts, recorded_at, took_micros, output) \
         VALUES ('', ?1, ?2, ?3, 'done', ?4, 1, 1, 0, ?5)",
    )?
    .execute((&key, name, saga, step, [b'x'; 100].as_slice()))?;
    let is_last = step + 1 == STEPS;
    if is_last {
        conn.prepare_cached(
            "UPDATE saga_progress SET version = ?2, state = ?3, advanced_at = 2, status = 'completed', ended_at = 2 WHERE id = ?1",
        )?
        .execute((saga, step + 2, [0_u8; 60].as_slice()))?;
    } else {
        conn.prepare_cached("UPDATE saga_progress SET version = ?2, state = ?3, advanced_at = 2 WHERE id = ?1")?
            .execute((saga, step + 2, [0_u8; 60].as_slice()))?;
    }
    let work = saga + 1 + i64::from(step);
    conn.prepare_cached("DELETE FROM saga_work WHERE id = ?1")?.execute([work])?;
    if !is_last {
        insert_work(conn, saga, &key, work + 1, STEP_NAMES[step as usize + 1])?;
    }
    Ok(())
}

fn insert_work(conn: &Connection, saga: i64, key: &str, id: i64, step: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO saga_work (id, saga, tenant, key, kind, step, definition, epoch, due_at, owner, leased_until, attempts, maybe, suspect) \
         VALUES (?1, ?2, '', ?3, 'do', ?4, 1, 1, 1, 1, 2, 0, 0, 0)",
    )?
    .execute((id, saga, key, step))?;
    Ok(())
}

/// Everything is there, and nothing else.
fn check(path: &Path, sagas: u32) -> Result<(), Error> {
    let conn = Connection::open(path)?;
    let count = |sql: &str| conn.query_row(sql, (), |row| row.get::<_, u32>(0));
    assert_eq!(count("SELECT count(*) FROM saga_progress WHERE status = 'completed'")?, sagas);
    assert_eq!(count("SELECT count(*) FROM saga_records")?, sagas * STEPS);
    assert_eq!(count("SELECT count(*) FROM lines")?, sagas * STEPS);
    assert_eq!(count("SELECT count(*) FROM saga_work")?, 0);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}
