use std::sync::Arc;
use std::time::Duration;

use saga_core::env::BoxFuture;
use saga_core::store::{Changes, HandlerVerdict, MovedSaga, TakenLock, TransactionBody};

use super::life::Life;

/// A step transaction that is watched: when its process crashes in it, it is rolled back, as a database does with a
/// connection that broke.
pub(super) struct Watched<C> {
    pub(super) body: Box<dyn TransactionBody<C>>,
    pub(super) life: Arc<Life>,
}

impl<C: Send> TransactionBody<C> for Watched<C> {
    fn granted(&mut self, granted: &[bool]) {
        self.body.granted(granted);
    }

    fn locked(&mut self, index: usize, taken: Vec<Option<TakenLock>>) {
        self.body.locked(index, taken);
    }

    fn time_limit(&self, index: usize) -> Duration {
        self.body.time_limit(index)
    }

    fn run<'a>(&'a mut self, index: usize, conn: &'a mut C) -> BoxFuture<'a, HandlerVerdict> {
        Box::pin(async move {
            let verdict = self.body.run(index, conn).await;
            if self.life.is_dead() { HandlerVerdict::Abandon } else { verdict }
        })
    }

    fn has_run(&self, index: usize) -> bool {
        self.body.has_run(index)
    }

    fn needs_savepoint(&mut self, index: usize) -> bool {
        self.body.needs_savepoint(index)
    }

    fn changes(&mut self) -> Vec<Changes> {
        self.body.changes()
    }

    fn decide_again(&mut self, moved: Vec<MovedSaga>) -> Option<Vec<Changes>> {
        self.body.decide_again(moved)
    }
}
