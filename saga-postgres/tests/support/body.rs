//! Step transactions whose handlers do as they are told.

use std::sync::Arc;
use std::time::Duration;

use saga_core::env::BoxFuture;
use saga_core::store::{
    Changes, Claim, HandlerVerdict, MovedSaga, SagaRow, Store as _, TransactError, TransactionBody,
};
use saga_postgres::PostgresStore;
use sqlx::PgConnection;
use tokio::sync::Notify;

use super::{begun, completed};

type Handler = Box<dyn for<'a> FnMut(&'a mut PgConnection) -> BoxFuture<'a, HandlerVerdict> + Send>;

/// Where a handler and a test meet: the handler says that it is here, and waits to be let on.
#[derive(Debug, Default)]
pub struct Meeting {
    pub entered: Notify,
    pub go_on: Notify,
}

/// A body of one handler for each claim, which then completes the sagas whose handlers were kept.
pub struct Body {
    claims: Vec<Claim>,
    handlers: Vec<Handler>,
    kept: Vec<usize>,
    limit: Duration,
    is_spared: bool,
    others: Vec<Changes>,
    whole: Option<Vec<Changes>>,
    again: Option<Again>,
}

/// What is decided when sagas have moved.
type Again = Box<dyn FnMut(&[Claim], Vec<SagaRow>) -> Vec<Changes> + Send>;

impl Body {
    pub fn new(claims: &[Claim]) -> Self {
        let limit = Duration::from_secs(20);
        Self {
            claims: claims.to_vec(),
            handlers: Vec::new(),
            kept: Vec::new(),
            limit,
            is_spared: false,
            others: Vec::new(),
            whole: None,
            again: None,
        }
    }

    /// All that is recorded, whatever was kept.
    pub fn records(mut self, changes: Vec<Changes>) -> Self {
        self.whole = Some(changes);
        self
    }

    /// What is decided when a saga has moved.
    pub fn decides_again(mut self, again: impl FnMut(&[Claim], Vec<SagaRow>) -> Vec<Changes> + Send + 'static) -> Self {
        self.again = Some(Box::new(again));
        self
    }

    /// No handler needs a savepoint.
    pub fn spared(mut self) -> Self {
        self.is_spared = true;
        self
    }

    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// What is recorded besides.
    pub fn besides(mut self, changes: Changes) -> Self {
        self.others.push(changes);
        self
    }

    /// The next claim's handler.
    pub fn then(
        mut self,
        handler: impl for<'a> FnMut(&'a mut PgConnection) -> BoxFuture<'a, HandlerVerdict> + Send + 'static,
    ) -> Self {
        self.handlers.push(Box::new(handler));
        self
    }

    /// The next claim's handler writes a note, and keeps it.
    pub fn note(self, text: &'static str) -> Self {
        self.then(move |conn| Box::pin(async move { keep(&write_note(conn, text).await) }))
    }

    /// The next claim's handler writes a note, and waits for the test.
    pub fn note_and_meet(self, text: &'static str, meeting: &Arc<Meeting>) -> Self {
        let meeting = Arc::clone(meeting);
        self.then(move |conn| {
            let meeting = Arc::clone(&meeting);
            Box::pin(async move {
                let written = write_note(conn, text).await;
                meeting.entered.notify_one();
                meeting.go_on.notified().await;
                keep(&written)
            })
        })
    }

    /// The next claim's handler sends this, and goes on whatever comes of it.
    pub fn sends(self, sql: &'static str) -> Self {
        self.then(move |conn| {
            Box::pin(async move {
                _ = sqlx::raw_sql(sql).execute(conn).await;
                HandlerVerdict::Keep
            })
        })
    }

    pub async fn transact(self, store: &PostgresStore) -> Result<(), TransactError> {
        let claims = self.claims.clone();
        store.transact(claims, Box::new(self)).await
    }
}

impl TransactionBody<PgConnection> for Body {
    fn granted(&mut self, granted: &[bool]) {
        assert_eq!(granted.len(), self.claims.len());
        self.kept.clear();
    }

    fn time_limit(&self, _index: usize) -> Duration {
        self.limit
    }

    fn needs_savepoint(&mut self, _index: usize) -> bool {
        !self.is_spared
    }

    fn run<'a>(&'a mut self, index: usize, conn: &'a mut PgConnection) -> BoxFuture<'a, HandlerVerdict> {
        let (kept, handler) = (&mut self.kept, &mut self.handlers[index]);
        Box::pin(async move {
            let verdict = handler(conn).await;
            if verdict == HandlerVerdict::Keep {
                kept.push(index);
            }
            verdict
        })
    }

    fn changes(&mut self) -> Vec<Changes> {
        if let Some(whole) = &self.whole {
            return whole.clone();
        }
        let completed = self.kept.iter().map(|index| completed(&self.claims[*index]));
        completed.chain(self.others.iter().cloned()).collect()
    }

    fn decide_again(&mut self, moved: Vec<MovedSaga>) -> Option<Vec<Changes>> {
        match &mut self.again {
            Some(again) => Some(again(&self.claims, moved.into_iter().map(|moved| moved.saga).collect())),
            None => panic!("no saga should have moved: {moved:?}"),
        }
    }
}

/// Completes the saga of this key in a step transaction that writes a note of the same text.
pub async fn complete(store: &PostgresStore, key: &'static str) -> Result<(), TransactError> {
    let claim = begun(store, key).await;
    Body::new(&[claim]).note(key).transact(store).await
}

pub async fn write_note(conn: &mut PgConnection, text: &str) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO notes (text) VALUES ($1)").bind(text).execute(conn).await.map(drop)
}

pub fn keep<T>(written: &sqlx::Result<T>) -> HandlerVerdict {
    if written.is_ok() { HandlerVerdict::Keep } else { HandlerVerdict::RollBack }
}
