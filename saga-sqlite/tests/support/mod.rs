//! What the tests share: a store in a folder of its own, sagas of one step, and bodies that do as they are told.
#![allow(dead_code, unreachable_pub, reason = "every test binary uses its own part of this")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rusqlite::Connection;
use saga_core::env::BoxFuture;
use saga_core::key::{Key, StepId, Tenant};
use saga_core::store::{
    Advance, Changes, Claim, Condition, DefinitionId, Ids as _, NewRecord, NewSaga, NewWork, RecordedOutcome, SagaId,
    SagaRow, Sagas as _, Started, Status, Store as _, StoreError, TransactError, TransactionBody, Verdict, WorkId,
    WorkKind, WorkRef,
};
use saga_sqlite::SqliteStore;
use tempfile::TempDir;

pub type Error = Box<dyn std::error::Error + Send + Sync>;

const STEP: &str = "reserve-stock";

/// A new store in a folder that goes with it, with a table `notes` beside the store's own.
pub async fn store() -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("orders.db")).await.unwrap();
    create_notes(&store).await;
    (folder, store)
}

pub async fn create_notes(store: &SqliteStore) {
    let create = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT";
    store.write(move |conn| -> Result<(), Error> { Ok(conn.execute_batch(create)?) }).await.unwrap();
}

/// The texts of the notes that are committed.
pub async fn notes(store: &SqliteStore) -> Vec<String> {
    let read = |conn: &Connection| -> Result<Vec<String>, Error> {
        let mut statement = conn.prepare("SELECT text FROM notes ORDER BY id")?;
        let texts = statement.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(texts)
    };
    store.read(read).await.unwrap()
}

pub fn write_note(conn: &Connection, text: &str) -> rusqlite::Result<usize> {
    conn.prepare_cached("INSERT INTO notes (text) VALUES (?1)")?.execute([text])
}

pub fn definition() -> DefinitionId {
    DefinitionId { name: "create-order".into(), version: 1 }
}

/// A saga of one step, with its command.
pub async fn new_saga(store: &SqliteStore, key: &str) -> NewSaga {
    let ids = store.reserve_ids(2).await.unwrap();
    let id = SagaId(ids.start);
    let command = NewWork {
        id: WorkId(ids.start + 1),
        saga: id,
        tenant: Tenant::default(),
        key: Key::new(key).unwrap(),
        kind: WorkKind::Do,
        step: StepId::doing(STEP),
        definition: definition(),
        payload: None,
        due_in: Duration::ZERO,
        lease: None,
    };
    NewSaga {
        id,
        tenant: Tenant::default(),
        key: Key::new(key).unwrap(),
        definition: definition(),
        digest: [7; 32],
        input: b"{}".to_vec(),
        input_hash: vec![1],
        state: vec![0],
        commands: vec![command],
    }
}

/// Starts a saga and answers the claim on its only command.
pub async fn begun(store: &SqliteStore, key: &str) -> Claim {
    let saga = new_saga(store, key).await;
    let claim = Claim {
        work: WorkRef { id: saga.commands[0].id, epoch: 1 },
        saga: saga.id,
        tenant: Tenant::default(),
        key: saga.key.clone(),
        step: StepId::doing(STEP),
        kind: WorkKind::Do,
    };
    let started = store.start(vec![saga]).await.unwrap();
    assert!(matches!(started[..], [Started::New]));
    claim
}

/// The changes that complete the saga of a claim, which has version 1.
pub fn completed(claim: &Claim) -> Changes {
    let record = NewRecord {
        saga: claim.saga,
        tenant: claim.tenant.clone(),
        key: claim.key.clone(),
        step: claim.step.clone(),
        outcome: RecordedOutcome::Done,
        output: Some(b"1".to_vec()),
        error: None,
        input: None,
        position: 1,
        attempts: 1,
        took: Duration::ZERO,
    };
    Changes {
        saga: Some(Advance { id: claim.saga, expected: 1, status: Status::Completed, state: vec![1] }),
        finished: vec![(claim.work, Condition::Held)],
        records: vec![record],
        ..Changes::default()
    }
}

type Handler = Box<dyn for<'a> FnMut(&'a mut Connection) -> BoxFuture<'a, Verdict> + Send>;

/// A body of one handler for each claim, which then completes the sagas whose handlers were kept.
pub struct Body {
    claims: Vec<Claim>,
    handlers: Vec<Handler>,
    kept: Vec<usize>,
    limit: Duration,
}

impl Body {
    pub fn new(claims: &[Claim]) -> Self {
        Self { claims: claims.to_vec(), handlers: Vec::new(), kept: Vec::new(), limit: Duration::from_secs(20) }
    }

    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The next claim's handler.
    pub fn then(self, mut handler: impl FnMut(&mut Connection) -> Verdict + Send + 'static) -> Self {
        self.then_async(move |conn| {
            let verdict = handler(conn);
            Box::pin(async move { verdict })
        })
    }

    pub fn then_async(
        mut self,
        handler: impl for<'a> FnMut(&'a mut Connection) -> BoxFuture<'a, Verdict> + Send + 'static,
    ) -> Self {
        self.handlers.push(Box::new(handler));
        self
    }

    pub async fn transact(self, store: &SqliteStore) -> Result<(), TransactError> {
        let claims = self.claims.clone();
        store.transact(claims, Box::new(self)).await
    }
}

impl TransactionBody<Connection> for Body {
    fn granted(&mut self, granted: &[bool]) {
        assert_eq!(granted.len(), self.claims.len());
        self.kept.clear();
    }

    fn time_limit(&self, _index: usize) -> Duration {
        self.limit
    }

    fn run<'a>(&'a mut self, index: usize, conn: &'a mut Connection) -> BoxFuture<'a, Verdict> {
        let (kept, handler) = (&mut self.kept, &mut self.handlers[index]);
        Box::pin(async move {
            let verdict = handler(conn).await;
            if verdict == Verdict::Keep {
                kept.push(index);
            }
            verdict
        })
    }

    fn changes(&mut self) -> Vec<Changes> {
        self.kept.iter().map(|index| completed(&self.claims[*index])).collect()
    }

    fn decide_again(&mut self, moved: Vec<SagaRow>) -> Vec<Changes> {
        panic!("no saga should have moved: {moved:?}")
    }
}

/// Completes the saga of this key in a step transaction that writes a note of the same text.
pub async fn complete(store: &SqliteStore, key: &'static str) -> Result<(), TransactError> {
    let claim = begun(store, key).await;
    Body::new(&[claim]).then(move |conn| keep(write_note(conn, key))).transact(store).await
}

#[expect(clippy::needless_pass_by_value, reason = "a test hands over what a statement answered")]
pub fn keep<T>(written: rusqlite::Result<T>) -> Verdict {
    if written.is_ok() { Verdict::Keep } else { Verdict::RollBack }
}

pub async fn status(store: &SqliteStore, key: &str) -> Option<Status> {
    store.saga(&Tenant::default(), &Key::new(key).unwrap()).await.unwrap().map(|saga| saga.status)
}

/// What SQLite says of the whole file.
pub fn assert_integrity(path: &std::path::Path) {
    let conn = Connection::open(path).unwrap();
    let answer: String = conn.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(answer, "ok");
}

/// The error of a call that must fail.
pub fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> StoreError {
    answer.expect_err("the call should have been refused")
}

/// A gate that holds the writer until it is opened, so that what is asked for meanwhile lands in one group.
pub struct Gate {
    opens: std::sync::mpsc::Sender<()>,
    held: tokio::task::JoinHandle<Result<(), Error>>,
}

impl Gate {
    pub async fn shut(store: &SqliteStore) -> Self {
        let (opens, opened) = std::sync::mpsc::channel();
        let (entered, enters) = tokio::sync::oneshot::channel();
        let mut entered = Some(entered);
        let opened = Arc::new(std::sync::Mutex::new(opened));
        let store = store.clone();
        let held = tokio::spawn(async move {
            store
                .write(move |_| {
                    if let Some(entered) = entered.take() {
                        _ = entered.send(());
                    }
                    // Whoever drops the other end opens the gate too.
                    _ = opened.lock().unwrap().recv();
                    Ok(())
                })
                .await
        });
        enters.await.unwrap();
        Self { opens, held }
    }

    pub async fn open(self) {
        drop(self.opens);
        self.held.await.unwrap().unwrap();
    }
}

/// Asks for many things, then lets `one` happen, and waits for everything that was asked for.
pub async fn all<T>(many: impl Iterator<Item = impl Future<Output = T>>, one: impl Future<Output = ()>) -> Vec<T> {
    let mut many: Vec<Pin<Box<_>>> = many.map(Box::pin).collect();
    let mut answers: Vec<Option<T>> = many.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, answer) in many.iter_mut().zip(&mut answers) {
            if let Poll::Ready(ready) = future.as_mut().poll(context) {
                *answer = Some(ready);
            }
        }
        Poll::Ready(())
    })
    .await;
    one.await;
    for (future, answer) in many.into_iter().zip(&mut answers) {
        if answer.is_none() {
            *answer = Some(future.await);
        }
    }
    answers.into_iter().flatten().collect()
}
