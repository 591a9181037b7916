//! Step transactions whose handlers do as they are told.

use std::time::Duration;

use rusqlite::Connection;
use saga_core::env::BoxFuture;
use saga_core::store::{Changes, Claim, HandlerVerdict, MovedSaga, Store as _, TransactError, TransactionBody};
use saga_sqlite::SqliteStore;

use super::{begun, completed, write_note};

type Handler = Box<dyn for<'a> FnMut(&'a mut Connection) -> BoxFuture<'a, HandlerVerdict> + Send>;

/// A body of one handler for each claim, which then completes the sagas whose handlers were kept.
pub struct Body {
    claims: Vec<Claim>,
    handlers: Vec<Handler>,
    kept: Vec<usize>,
    limit: Duration,
    /// Which of the claims' handlers need a savepoint; all, where it is not said.
    needs: Vec<bool>,
    whole: Option<Vec<Changes>>,
}

impl Body {
    pub fn new(claims: &[Claim]) -> Self {
        let limit = Duration::from_secs(20);
        Self { claims: claims.to_vec(), handlers: Vec::new(), kept: Vec::new(), limit, needs: Vec::new(), whole: None }
    }

    /// All that is recorded, whatever was kept.
    pub fn records(mut self, changes: Vec<Changes>) -> Self {
        self.whole = Some(changes);
        self
    }

    /// No handler needs a savepoint.
    pub fn spared(self) -> Self {
        let spared = vec![false; self.claims.len()];
        self.needs(spared)
    }

    /// Whether each handler needs a savepoint.
    pub fn needs(mut self, needs: impl Into<Vec<bool>>) -> Self {
        self.needs = needs.into();
        self
    }

    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The next claim's handler.
    pub fn then(self, mut handler: impl FnMut(&mut Connection) -> HandlerVerdict + Send + 'static) -> Self {
        self.then_async(move |conn| {
            let verdict = handler(conn);
            Box::pin(async move { verdict })
        })
    }

    pub fn then_async(
        mut self,
        handler: impl for<'a> FnMut(&'a mut Connection) -> BoxFuture<'a, HandlerVerdict> + Send + 'static,
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

    fn needs_savepoint(&mut self, index: usize) -> bool {
        self.needs.get(index).copied().unwrap_or(true)
    }

    fn run<'a>(&'a mut self, index: usize, conn: &'a mut Connection) -> BoxFuture<'a, HandlerVerdict> {
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
        let completed = || self.kept.iter().map(|index| completed(&self.claims[*index])).collect();
        self.whole.clone().unwrap_or_else(completed)
    }

    fn decide_again(&mut self, moved: Vec<MovedSaga>) -> Option<Vec<Changes>> {
        panic!("no saga should have moved: {moved:?}")
    }
}

/// Completes the saga of this key in a step transaction that writes a note of the same text.
pub async fn complete(store: &SqliteStore, key: &'static str) -> Result<(), TransactError> {
    let claim = begun(store, key).await;
    Body::new(&[claim]).then(move |conn| keep(write_note(conn, key))).transact(store).await
}

#[expect(clippy::needless_pass_by_value, reason = "a test hands over what a statement answered")]
pub fn keep<T>(written: rusqlite::Result<T>) -> HandlerVerdict {
    if written.is_ok() { HandlerVerdict::Keep } else { HandlerVerdict::RollBack }
}
