//! The application's own tables in the store's file.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;
use saga_core::store::{StoreError, StoreErrorKind};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::error::{closed, read_failed, store_error, writer_ended};
use crate::store::store::SqliteStore;
use crate::writer::job::{Completion, Job, JobFlow, drop_callers_value, panicked, unanswered};
use crate::writer::job_queues::ReadJob;
use crate::writer::session::{JOB, Session};

const WRITE: &str = "write";
const READ: &str = "read";

impl SqliteStore {
    /// Writes to the application's own tables, in the store's file and in its order of commits: the closure runs on the
    /// writer thread in a transaction, which is committed when it returns `Ok` and rolled back when it returns `Err`.
    ///
    /// It shares its commit with other writes, so many small writes cost little. For the same reason it may run several
    /// times and takes effect once: it must have no effect outside its connection. The rules for steps on the [crate's
    /// page](crate) apply to it too.
    ///
    /// # Errors
    /// Those of the closure; and those of the store, when the commit failed or [`write_time_max`] has passed. An error
    /// of the kind [`UnknownCommit`](StoreErrorKind::UnknownCommit) means that the write may be committed.
    ///
    /// [`write_time_max`]: crate::SqliteOptions::write_time_max
    ///
    /// # Cancel safety
    /// Dropped, the write happens whole or not at all.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("orders.db");
    /// # type Error = Box<dyn std::error::Error + Send + Sync>;
    /// use saga_sqlite::SqliteStore;
    ///
    /// let store = SqliteStore::open(&path).await?;
    /// store
    ///     .write(|conn| -> Result<(), Error> {
    ///         conn.execute_batch("CREATE TABLE IF NOT EXISTS products (id INTEGER PRIMARY KEY, in_stock INTEGER) STRICT")?;
    ///         conn.execute("INSERT INTO products (id, in_stock) VALUES (11, 22)", ())?;
    ///         Ok(())
    ///     })
    ///     .await?;
    ///
    /// let in_stock: i64 = store
    ///     .read(|conn| -> Result<_, Error> {
    ///         Ok(conn.query_row("SELECT in_stock FROM products WHERE id = 11", (), |row| row.get(0))?)
    ///     })
    ///     .await?;
    /// assert_eq!(in_stock, 22);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn write<T, E>(
        &self,
        mut write: impl FnMut(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.submit(move |session: &mut Session| {
            let limit = session.shared.options.write_time_max;
            session.run_guarded(limit, async |conn| write(conn))
        })
        .await
    }

    /// Like [`write`](Self::write) for an async closure: it may start sagas in its transaction.
    ///
    /// The writer polls it on its own thread and runs no other call meanwhile, so it must not wait for anything slow.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    ///
    /// # Cancel safety
    /// That of [`write`](Self::write).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("orders.db");
    /// # type Error = Box<dyn std::error::Error + Send + Sync>;
    /// use saga_sqlite::SqliteStore;
    ///
    /// let store = SqliteStore::open(&path).await?;
    /// let orders: i64 = store
    ///     .write_async(async |conn| -> Result<_, Error> {
    ///         conn.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY) STRICT")?;
    ///         conn.execute("INSERT INTO orders (id) VALUES (10248)", ())?;
    ///         // Here `runtime.start(..).in_tx(conn).await` starts a saga that exists if and only if the order does.
    ///         Ok(conn.query_row("SELECT count(*) FROM orders", (), |row| row.get(0))?)
    ///     })
    ///     .await?;
    /// assert_eq!(orders, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn write_async<T, E>(
        &self,
        mut write: impl AsyncFnMut(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.submit(move |session: &mut Session| {
            let limit = session.shared.options.write_time_max;
            session.run_guarded(limit, async |conn| write(conn).await)
        })
        .await
    }

    /// Reads committed data, on a connection that cannot write. All statements of the closure see one state. Keep it
    /// short: while it runs, the write-ahead log cannot be emptied.
    ///
    /// # Errors
    /// Those of the closure; and those of the store, when it is closed or the closure panicked.
    ///
    /// # Cancel safety
    /// Dropping it loses only the answer.
    ///
    /// # Examples
    /// See [`write`](Self::write).
    pub async fn read<T, E>(&self, read: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let _held = self.shared().clock.hold();
        let (reply, answer) = oneshot::channel();
        let job: ReadJob = Box::new(move |conn| {
            let answer = match conn.transaction() {
                Ok(tx) => read(&tx),
                Err(error) => Err(store_error(READ, error).into()),
            };
            _ = reply.send(answer);
        });
        if !self.queues().reads.push(job) {
            return Err(closed(READ).into());
        }
        answer.await.unwrap_or_else(|_| Err(read_failed(READ).into()))
    }

    async fn submit<T, E, F>(&self, function: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnMut(&mut Session) -> Option<Result<T, E>> + Send + 'static,
    {
        let _held = self.shared().clock.hold();
        let (reply, answer) = oneshot::channel();
        let job = Write { function, runtime: Handle::try_current().ok(), answer: None, reply };
        self.send(WRITE, Box::new(job))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended(WRITE).into()))
    }
}

/// A write of the application as a job.
struct Write<T, E, F> {
    function: F,
    runtime: Option<Handle>,
    answer: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<T, E, F> Job for Write<T, E, F>
where
    T: Send,
    E: From<StoreError> + Send,
    F: FnMut(&mut Session) -> Option<Result<T, E>> + Send,
{
    fn run(&mut self, session: &mut Session) -> JobFlow {
        let runtime = self.runtime.clone();
        let _entered = runtime.as_ref().map(Handle::enter);
        if let Err(error) = session.set(JOB) {
            self.answer = Some(Err(store_error(WRITE, error).into()));
            return JobFlow::RetryAlone;
        }
        let ran = catch_unwind(AssertUnwindSafe(|| (self.function)(session)));
        let is_gone = session.conn.is_autocommit();
        let refuse = |kind, detail: &str| Err(StoreError::new(kind, WRITE, detail).into());
        let answer = match ran {
            _ if session.authorizer.tried_to_end_transaction() => {
                refuse(StoreErrorKind::Misuse, "the closure ended the transaction that it was given")
            }
            _ if session.authorizer.was_interrupted() && is_gone => {
                refuse(StoreErrorKind::Unavailable, "a statement ran past the time limit")
            }
            // The closure ignored the error of the statement that ended the transaction.
            Ok(Some(Ok(_))) if is_gone => {
                let detail = "SQLite rolled the transaction back by itself, and the closure returned `Ok` all the same";
                refuse(StoreErrorKind::Unavailable, detail)
            }
            Ok(Some(answer)) => answer,
            Ok(None) => refuse(StoreErrorKind::Unavailable, "the closure did not end within its time limit"),
            Err(panic) => Err(panicked(WRITE, &*panic).into()),
        };
        let is_kept = answer.is_ok();
        self.answer = Some(answer);
        if is_gone {
            let is_at_fault = session.authorizer.tried_to_end_transaction() || session.authorizer.was_interrupted();
            return if is_at_fault { JobFlow::Fail } else { JobFlow::RetryAlone };
        }
        let back = if is_kept { Ok(()) } else { session.roll_back_to(JOB) };
        let Err(error) = back.and_then(|()| session.release(JOB)) else { return JobFlow::Continue };
        if is_kept {
            self.answer = Some(Err(store_error(WRITE, error).into()));
        }
        JobFlow::RetryAlone
    }

    fn complete(self: Box<Self>, completion: Completion<'_>) {
        let Self { function, answer, reply, .. } = *self;
        drop_callers_value(function);
        let answer = match completion {
            Completion::Answered => answer.unwrap_or_else(|| Err(unanswered(WRITE).into())),
            Completion::Failed(error) => Err(error.error(WRITE).into()),
        };
        // The caller may have dropped its future.
        _ = reply.send(answer);
    }
}
