//! The store in memory, and how its calls read and write.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::clock::Clock;
use super::commit_hook::{CommitFate, CommitHook, CommitPoint};
use super::data::Data;
use super::shared::Shared;
use super::table::MemoryTable;
use crate::env::Environment;
use crate::store::{HintBoard, StoreError, StoreErrorKind, Timestamp};

/// How long a commit that several share waits for what a transaction holds.
const LOCK_TIMEOUT: Duration = Duration::from_millis(50);

/// A store in memory that obeys the whole contract. Nothing of it survives the process.
///
/// A clone is another handle on the same data: several runtimes may work on it at once, as replicas of a service do.
/// Steps take a [`MemoryConn`](super::MemoryConn): a small transactional table for whatever a test writes.
///
/// ```
/// use saga_core::memory::MemoryStore;
///
/// let store = MemoryStore::new();
/// assert_eq!(store.read(|table| table.counter("orders")), 0);
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    pub(super) shared: Arc<Shared>,
    pub(super) hook: Option<Arc<dyn CommitHook>>,
    pub(super) hints: Option<HintBoard>,
}

impl MemoryStore {
    /// An empty store on the machine's clock. It needs no tokio runtime.
    pub fn new() -> Self {
        Self::on(Clock::machine())
    }

    /// An empty store whose clock is the environment's.
    pub fn with_environment(environment: Arc<dyn Environment>) -> Self {
        Self::on(Clock::Environment(environment))
    }

    /// The same store, whose handles tell each other what there is to do. Without it their runtimes poll.
    #[must_use]
    pub fn with_hints(mut self) -> Self {
        self.hints = Some(HintBoard::new());
        self
    }

    /// Looks at the committed rows of the business table.
    pub fn read<T>(&self, read: impl FnOnce(&MemoryTable) -> T) -> T {
        read(&self.shared.lock().table)
    }

    /// This handle on the data with a hook that decides what becomes of its calls. Other handles keep theirs.
    #[doc(hidden)]
    #[must_use]
    pub fn with_commit_hook(mut self, hook: Arc<dyn CommitHook>) -> Self {
        self.hook = Some(hook);
        self
    }

    fn on(clock: Clock) -> Self {
        Self { shared: Arc::new(Shared::new(clock)), hook: None, hints: None }
    }

    /// Asks the hook.
    pub(super) async fn pass(&self, point: CommitPoint) -> Result<(), StoreError> {
        let Some(hook) = &self.hook else { return Ok(()) };
        match hook.at(point).await {
            CommitFate::Proceed => Ok(()),
            CommitFate::Fail(error) => Err(error),
            CommitFate::InDoubt => Err(unknown_commit(point)),
        }
    }

    /// A call that reads.
    pub(super) async fn reading<T>(
        &self,
        operation: &'static str,
        read: impl FnOnce(&Data, Timestamp) -> T + Send,
    ) -> Result<T, StoreError> {
        self.pass(CommitPoint::Reading(operation)).await?;
        Ok(read(&self.shared.lock(), self.shared.now()))
    }

    /// A call that writes in a commit of its own. The attempt answers nothing, and has written nothing, when it meets
    /// a row that a transaction holds; it is made again when one has ended.
    pub(super) async fn writing<T: Send>(
        &self,
        operation: &'static str,
        attempt: impl FnMut(&mut Data, Timestamp) -> Option<Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.pass(CommitPoint::Committing(operation)).await?;
        let answer = self.shared.when_unlocked(attempt).await?;
        self.pass(CommitPoint::Committed(operation)).await?;
        Ok(answer)
    }

    /// The same for what others share a commit with: it waits shortly, and gives up then.
    pub(super) async fn writing_shortly<T: Send>(
        &self,
        operation: &'static str,
        attempt: impl FnMut(&mut Data, Timestamp) -> Option<Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.pass(CommitPoint::Committing(operation)).await?;
        let answer = self.shared.clock.within(LOCK_TIMEOUT, self.shared.when_unlocked(attempt)).await;
        let locked = || StoreError::new(StoreErrorKind::Conflict, operation, "a transaction holds what it would write");
        let answer = answer.ok_or_else(locked)??;
        self.pass(CommitPoint::Committed(operation)).await?;
        Ok(answer)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

pub(super) fn unknown_commit(point: CommitPoint) -> StoreError {
    let operation = match point {
        CommitPoint::Reading(operation) | CommitPoint::Committing(operation) | CommitPoint::Committed(operation) => {
            operation
        }
        CommitPoint::Claimed | CommitPoint::Handled(_) => "transact",
    };
    StoreError::new(StoreErrorKind::UnknownCommit, operation, "the answer to the commit did not arrive")
}
