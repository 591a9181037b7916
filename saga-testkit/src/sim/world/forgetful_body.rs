//! A step transaction that keeps no lock of those that it took: a mistake that the simulation has to find.

use std::time::Duration;

use saga_core::env::BoxFuture;
use saga_core::memory::MemoryConn;
use saga_core::store::{Changes, HandlerVerdict, MovedSaga, TakenLock, TransactionBody};

/// Leaves the locks that outlast the transaction out of its changes.
pub(super) struct ForgetfulBody(pub(super) Box<dyn TransactionBody<MemoryConn>>);

fn without_locks(mut changes: Vec<Changes>) -> Vec<Changes> {
    for change in &mut changes {
        change.locked.clear();
    }
    changes
}

impl TransactionBody<MemoryConn> for ForgetfulBody {
    fn granted(&mut self, granted: &[bool]) {
        self.0.granted(granted);
    }

    fn locked(&mut self, index: usize, taken: Vec<Option<TakenLock>>) {
        self.0.locked(index, taken);
    }

    fn time_limit(&self, index: usize) -> Duration {
        self.0.time_limit(index)
    }

    fn needs_savepoint(&mut self, index: usize) -> bool {
        self.0.needs_savepoint(index)
    }

    fn run<'a>(&'a mut self, index: usize, conn: &'a mut MemoryConn) -> BoxFuture<'a, HandlerVerdict> {
        self.0.run(index, conn)
    }

    fn has_run(&self, index: usize) -> bool {
        self.0.has_run(index)
    }

    fn changes(&mut self) -> Vec<Changes> {
        without_locks(self.0.changes())
    }

    fn decide_again(&mut self, moved: Vec<MovedSaga>) -> Option<Vec<Changes>> {
        self.0.decide_again(moved).map(without_locks)
    }
}
