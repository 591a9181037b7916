use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use saga_core::store::{Hints, StoreError, StoreErrorKind, Timestamp};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::error::{Failure, closed, misuse, no_thread, read_failed, store_error, writer_ended};
use crate::fault_injection::CommitFault;
use crate::file::connection;
use crate::ids::{self};
use crate::options::SqliteOptions;
use crate::shared::Shared;
use crate::statistics::Statistics;
use crate::writer::authorizer::Authorizer;
use crate::writer::job::{Call, Job};
use crate::writer::job_queues::{JobQueues, Opened, ReadJob};
use crate::writer::readers::Readers;
use crate::writer::session::Session;
use crate::writer::thread_role;
use crate::writer::writer;

/// A store in a SQLite file.
///
/// A clone is another handle on the same store. When the last handle is dropped, the calls that wait are finished, the
/// write-ahead log is emptied and the file is free for another process.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
    pub(crate) commit_fault: CommitFault,
}

struct Inner {
    shared: Arc<Shared>,
    queues: Arc<JobQueues>,
    threads: Mutex<Option<StoreThreads>>,
}

/// The threads that the store joins when it ends.
enum StoreThreads {
    Writer(JoinHandle<()>),
    Readers(Readers),
}

impl SqliteStore {
    /// Opens the file at `path`, which is created if it does not exist, with the default options.
    ///
    /// # Errors
    /// Those of [`open_with`](Self::open_with).
    ///
    /// # Cancel safety
    /// That of [`open_with`](Self::open_with).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("orders.db");
    /// use saga_sqlite::SqliteStore;
    ///
    /// let store = SqliteStore::open(&path).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(SqliteOptions::new(path.as_ref())).await
    }

    /// Opens the file that a URL names: `sqlite:orders.db`.
    ///
    /// # Errors
    /// Those of [`SqliteOptions::from_url`] and of [`open_with`](Self::open_with).
    ///
    /// # Cancel safety
    /// That of [`open_with`](Self::open_with).
    pub async fn from_url(url: &str) -> Result<Self, StoreError> {
        Self::open_with(SqliteOptions::from_url(url)?).await
    }

    /// Opens a file for reading only, also while another process works on it. Calls that write fail with the kind
    /// [`NotWritable`](StoreErrorKind::NotWritable).
    ///
    /// # Errors
    /// Those of [`open_with`](Self::open_with), and when the file holds no sagas.
    ///
    /// # Cancel safety
    /// That of [`open_with`](Self::open_with).
    pub async fn read_only(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(SqliteOptions::new(path.as_ref()).read_only()).await
    }

    /// Opens a file. While another process works on it, this call waits, for
    /// [`wait_for_lock`](SqliteOptions::wait_for_lock) at most (30 seconds by default). It reports the wait through
    /// [`on_wait`](SqliteOptions::on_wait) and as a warning of `tracing`.
    ///
    /// # Errors
    /// One sentence that names the file and says what to do: when a newer version wrote the file, when it is no
    /// database, when its folder cannot be written, when this process has it open already, or when another process
    /// still works on it after [`wait_for_lock`](SqliteOptions::wait_for_lock), which it names by its process id.
    ///
    /// # Cancel safety
    /// Dropping it ends the waiting; a file that was opened meanwhile is closed again.
    pub async fn open_with(options: SqliteOptions) -> Result<Self, StoreError> {
        let options = options.resolved()?;
        if options.read_only {
            return Self::open_to_read(options);
        }
        let (opened, answer) = oneshot::channel();
        let thread = writer::spawn(options, opened).map_err(no_thread)?;
        let opened = answer.await.unwrap_or_else(|_| Err(closed("open")))?;
        Ok(Self::new(opened, StoreThreads::Writer(thread)))
    }

    /// Finishes the calls that wait, empties the write-ahead log and frees the file. Calls through other handles fail
    /// from here on.
    ///
    /// # Cancel safety
    /// The store is closed even if this is dropped; only the notice that the file is free is lost.
    pub async fn close(&self) {
        self.inner.queues.writes.close();
        if self.inner.shared.options.read_only {
            self.inner.end();
        } else {
            // The semaphore has no permits: this waits until the writer closes it.
            _ = self.inner.queues.file_freed.acquire().await;
        }
    }

    /// Counters of the writer since the store was opened.
    pub fn statistics(&self) -> Statistics {
        self.inner.shared.statistics.read()
    }

    /// By how much the machine's clock was behind the newest entry in the file when the file was opened, if by more
    /// than a minute. Work that waits for a time before that waits until the clock has caught up.
    pub fn clock_behind(&self) -> Option<Duration> {
        self.inner.shared.clock_behind
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.inner.shared.options.path
    }

    /// A handle on the same store whose next commit is answered as unknown. `is_committed` says whether it took place.
    #[cfg(feature = "fault-injection")]
    #[doc(hidden)]
    #[must_use]
    pub fn with_lost_commit(&self, is_committed: bool) -> Self {
        Self { inner: Arc::clone(&self.inner), commit_fault: CommitFault::lose_next(is_committed) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    pub(crate) fn queues(&self) -> &JobQueues {
        &self.inner.queues
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.shared.clock.now()
    }

    /// Runs a function on the writer thread. It must check before it writes; the answer is returned when it is
    /// committed.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        operation: &'static str,
        function: impl FnMut(&mut Session) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let _held = self.inner.shared.clock.hold();
        let (reply, answer) = oneshot::channel();
        self.send(operation, Box::new(Call::new(operation, function, reply)))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended(operation)))
    }

    /// Queues a job for the writer.
    pub(crate) fn send(&self, operation: &'static str, job: Box<dyn Job>) -> Result<(), StoreError> {
        let shared = &self.inner.shared;
        if shared.options.read_only {
            let detail = format!("{} was opened read only", shared.options.path.display());
            return Err(StoreError::new(StoreErrorKind::NotWritable, operation, detail));
        }
        if thread_role::is_writer() {
            return Err(misuse(
                operation,
                "called from inside a transaction of the store, which would wait for itself; use the connection that the step was given",
            ));
        }
        if self.inner.queues.writes.push(self.commit_fault.apply(job)) { Ok(()) } else { Err(closed(operation)) }
    }

    /// Runs a function on a reader thread, on committed data.
    pub(crate) async fn query<T: Send + 'static>(
        &self,
        operation: &'static str,
        function: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let _held = self.inner.shared.clock.hold();
        let (reply, answer) = oneshot::channel();
        let job: ReadJob = Box::new(move |conn| {
            // One snapshot for all statements of the function.
            let read = conn.transaction().and_then(|tx| function(&tx));
            _ = reply.send(read.map_err(|error| store_error(operation, error)));
        });
        if !self.inner.queues.reads.push(job) {
            return Err(closed(operation));
        }
        answer.await.unwrap_or_else(|_| Err(read_failed(operation)))
    }

    /// Ids for this caller alone.
    pub(crate) async fn next_ids(&self, operation: &'static str, count: u32) -> Result<Range<i64>, StoreError> {
        let ids = &self.inner.shared.ids;
        loop {
            if !ids.is_low()
                && let Some(range) = ids.take(count)
            {
                return Ok(range);
            }
            let block = self.call(operation, |session| Ok(ids::fetch(&session.conn)?)).await?;
            ids.add(&block);
        }
    }

    fn open_to_read(options: SqliteOptions) -> Result<Self, StoreError> {
        connection::check_folder(&options.path)?;
        let conn = connection::open_reader(&options)?;
        crate::file::schema::require(&conn, &options.path)?;
        let clock = Arc::new(Clock::new(options.clock.clone()));
        let authorizer = Authorizer::new(Arc::clone(&clock));
        let shared = Arc::new(Shared::new(options, clock, 1..1, &authorizer));
        let queues = Arc::new(JobQueues::new());
        let readers = Readers::spawn(&shared, &queues)?;
        Ok(Self::new((shared, queues), StoreThreads::Readers(readers)))
    }

    fn new((shared, queues): Opened, keeper: StoreThreads) -> Self {
        Self {
            inner: Arc::new(Inner { shared, queues, threads: Mutex::new(Some(keeper)) }),
            commit_fault: CommitFault::NONE,
        }
    }
}

/// Only one process works on a file, so there is no other process to notify.
impl Hints for SqliteStore {}

impl Inner {
    fn end(&self) {
        match self.threads.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A thread of the store cannot join itself; it ends by itself.
            Some(StoreThreads::Writer(thread)) if !thread_role::is_own() => _ = thread.join(),
            Some(StoreThreads::Readers(readers)) if !thread_role::is_own() => readers.end(),
            Some(StoreThreads::Readers(readers)) => readers.detach(),
            Some(StoreThreads::Writer(_)) | None => {}
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queues.writes.close();
        self.end();
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: &PathBuf = &self.inner.shared.options.path;
        f.debug_struct("SqliteStore").field("path", path).finish_non_exhaustive()
    }
}
