//! The store in memory, and how its calls read and write.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::env::Environment;
use crate::memory::clock::Clock;
use crate::memory::commit_hook::{CommitFate, CommitHook, CommitPoint};
use crate::memory::shared::Shared;
use crate::memory::tables::data::Data;
use crate::memory::tables::table::MemoryTable;
use crate::store::{HintBoard, StoreError, StoreErrorKind, Timestamp};

/// How long a commit that several callers share waits for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_millis(50);

/// A store in memory that fulfils the whole contract. Its data ends with the process.
///
/// A clone is another handle on the same data: several runtimes may work on it at once, like replicas of a service.
/// Steps take a [`MemoryConn`](crate::memory::MemoryConn): a small transactional table for the writes of a test.
///
/// ```
/// use saga_core::memory::MemoryStore;
///
/// let store = MemoryStore::new();
/// assert_eq!(store.read(|table| table.counter("orders")), 0);
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    pub(in crate::memory) shared: Arc<Shared>,
    pub(in crate::memory) hook: Option<Arc<dyn CommitHook>>,
    pub(in crate::memory) hints: Option<HintBoard>,
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

    /// The same store, whose handles send hints to each other. Without hints their runtimes poll.
    #[doc(hidden)]
    #[must_use]
    pub fn with_hints(mut self) -> Self {
        self.hints = Some(HintBoard::new());
        self
    }

    /// Reads the committed rows of the business table.
    pub fn read<T>(&self, read: impl FnOnce(&MemoryTable) -> T) -> T {
        read(&self.shared.lock().table)
    }

    /// This handle with a hook that decides the fate of its calls. Other handles keep theirs.
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
    pub(in crate::memory) async fn ask_hook(&self, point: CommitPoint) -> Result<(), StoreError> {
        let Some(hook) = &self.hook else { return Ok(()) };
        match hook.at(point).await {
            CommitFate::Proceed => Ok(()),
            CommitFate::Fail(error) => Err(error),
            CommitFate::InDoubt => Err(unknown_commit(point)),
        }
    }

    /// A call that reads.
    pub(in crate::memory) async fn reading<T>(
        &self,
        operation: &'static str,
        read: impl FnOnce(&Data, Timestamp) -> T + Send,
    ) -> Result<T, StoreError> {
        self.shared.clock.note_call();
        self.ask_hook(CommitPoint::Reading(operation)).await?;
        Ok(read(&self.shared.lock(), self.shared.now()))
    }

    /// A call that writes in a commit of its own. The attempt returns `None`, and has written nothing, when it meets a
    /// row that a transaction holds; it is repeated when a transaction has ended.
    pub(in crate::memory) async fn writing<T: Send>(
        &self,
        operation: &'static str,
        attempt: impl FnMut(&mut Data, Timestamp) -> Option<Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.shared.clock.note_call();
        self.ask_hook(CommitPoint::Committing(operation)).await?;
        let answer = self.shared.when_unlocked(attempt).await?;
        self.ask_hook(CommitPoint::Committed(operation)).await?;
        Ok(answer)
    }

    /// The same for calls that share a commit with others: it fails after a short wait.
    pub(in crate::memory) async fn writing_shortly<T: Send>(
        &self,
        operation: &'static str,
        attempt: impl FnMut(&mut Data, Timestamp) -> Option<Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.shared.clock.note_call();
        self.ask_hook(CommitPoint::Committing(operation)).await?;
        let answer = self.shared.clock.within(LOCK_TIMEOUT, self.shared.when_unlocked(attempt)).await;
        let locked = || {
            StoreError::new(StoreErrorKind::Conflict, operation, "another transaction holds a row that the call writes")
        };
        let answer = answer.ok_or_else(locked)??;
        self.ask_hook(CommitPoint::Committed(operation)).await?;
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

pub(in crate::memory) fn unknown_commit(point: CommitPoint) -> StoreError {
    let operation = match point {
        CommitPoint::Reading(operation) | CommitPoint::Committing(operation) | CommitPoint::Committed(operation) => {
            operation
        }
        CommitPoint::Claimed | CommitPoint::Handled(_) => "transact",
    };
    StoreError::new(StoreErrorKind::UnknownCommit, operation, "the answer to the commit did not arrive")
}
