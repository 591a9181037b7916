//! Step transactions whose handlers do as a test says.

use std::fmt;
use std::time::Duration;

use saga_core::env::BoxFuture;
use saga_core::store::{Changes, Claim, HandlerVerdict, MovedSaga, SagaRow, Store, TransactError, TransactionBody};

use crate::one_step::completed;

/// How long a handler may take, where the test does not say.
const TIME_LIMIT: Duration = Duration::from_secs(20);

type Handler<C> = Box<dyn for<'a> FnMut(&'a mut C) -> BoxFuture<'a, HandlerVerdict> + Send>;

/// What is decided when sagas have moved.
type Again = Box<dyn FnMut(&[Claim], Vec<SagaRow>) -> Vec<Changes> + Send>;

/// A body of one handler for each claim, which then completes the sagas whose handlers were kept. `C` is the store's
/// connection.
pub struct Body<C> {
    claims: Vec<Claim>,
    handlers: Vec<Handler<C>>,
    kept: Vec<usize>,
    limit: Duration,
    /// Which of the claims' handlers need a savepoint; all, where it is not said.
    needs: Vec<bool>,
    others: Vec<Changes>,
    whole: Option<Vec<Changes>>,
    again: Option<Again>,
}

impl<C: Send + 'static> Body<C> {
    /// A body without handlers.
    #[must_use]
    pub fn new(claims: &[Claim]) -> Self {
        Self {
            claims: claims.to_vec(),
            handlers: Vec::new(),
            kept: Vec::new(),
            limit: TIME_LIMIT,
            needs: Vec::new(),
            others: Vec::new(),
            whole: None,
            again: None,
        }
    }

    /// All that is recorded, whatever was kept.
    #[must_use]
    pub fn records(mut self, changes: Vec<Changes>) -> Self {
        self.whole = Some(changes);
        self
    }

    /// What is recorded besides.
    #[must_use]
    pub fn besides(mut self, changes: Changes) -> Self {
        self.others.push(changes);
        self
    }

    /// What is decided when a saga has moved. Without this, none may move.
    #[must_use]
    pub fn decides_again(mut self, again: impl FnMut(&[Claim], Vec<SagaRow>) -> Vec<Changes> + Send + 'static) -> Self {
        self.again = Some(Box::new(again));
        self
    }

    /// No handler needs a savepoint.
    #[must_use]
    pub fn spared(self) -> Self {
        let spared = vec![false; self.claims.len()];
        self.needs(spared)
    }

    /// Whether each handler needs a savepoint.
    #[must_use]
    pub fn needs(mut self, needs: impl Into<Vec<bool>>) -> Self {
        self.needs = needs.into();
        self
    }

    /// How long a handler may take.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The next claim's handler.
    #[must_use]
    pub fn then(
        mut self,
        handler: impl for<'a> FnMut(&'a mut C) -> BoxFuture<'a, HandlerVerdict> + Send + 'static,
    ) -> Self {
        self.handlers.push(Box::new(handler));
        self
    }

    /// The next claim's handler, which waits for nothing.
    #[must_use]
    pub fn then_now(self, mut handler: impl FnMut(&mut C) -> HandlerVerdict + Send + 'static) -> Self {
        self.then(move |conn| {
            let verdict = handler(conn);
            Box::pin(async move { verdict })
        })
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of [`Store::transact`].
    ///
    /// # Cancel safety
    /// That of [`Store::transact`].
    pub async fn transact<S: Store<Conn = C>>(self, store: &S) -> Result<(), TransactError> {
        let claims = self.claims.clone();
        store.transact(claims, Box::new(self)).await
    }
}

impl<C: Send + 'static> TransactionBody<C> for Body<C> {
    fn granted(&mut self, granted: &[bool]) {
        assert_eq!(granted.len(), self.claims.len(), "each claim has an answer");
        self.kept.clear();
    }

    fn time_limit(&self, _index: usize) -> Duration {
        self.limit
    }

    fn needs_savepoint(&mut self, index: usize) -> bool {
        self.needs.get(index).copied().unwrap_or(true)
    }

    fn run<'a>(&'a mut self, index: usize, conn: &'a mut C) -> BoxFuture<'a, HandlerVerdict> {
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

impl<C> fmt::Debug for Body<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("claims", &self.claims).finish_non_exhaustive()
    }
}

/// The verdict of a handler that writes once: what could not be written is rolled back.
pub fn keep<T, E>(written: &Result<T, E>) -> HandlerVerdict {
    if written.is_ok() { HandlerVerdict::Keep } else { HandlerVerdict::RollBack }
}
