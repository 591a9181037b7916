//! The one thread that writes: it opens the file, works off what callers send, and closes the file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use saga_core::store::{StoreError, StoreErrorKind};
use tokio::sync::oneshot;

use crate::authorizer::Authorizer;
use crate::connection;
use crate::error::{GroupError, store_error};
use crate::file_lock::FileLock;
use crate::group_commit::{BoxedJob, ConnectionHealth, Limits, run_groups};
use crate::job::Completion;
use crate::options::SqliteOptions;
use crate::readers::Readers;
use crate::recovery;
use crate::session::Session;
use crate::store::Shared;
use crate::thread_role::{self, ThreadRole};

/// Opens the file on a thread of its own, which goes on as its writer.
pub(crate) fn spawn(
    options: SqliteOptions,
    opened: oneshot::Sender<Result<Arc<Shared>, StoreError>>,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("saga-sqlite-write".to_owned()).spawn(move || run(options, opened))
}

fn run(options: SqliteOptions, opened: oneshot::Sender<Result<Arc<Shared>, StoreError>>) {
    thread_role::set(ThreadRole::Writer);
    let writer = match Writer::open(options, || opened.is_closed()) {
        Ok(writer) => writer,
        Err(error) => {
            _ = opened.send(Err(error));
            return;
        }
    };
    let shared = Arc::clone(&writer.shared);
    if opened.send(Ok(Arc::clone(&shared))).is_err() {
        // Nobody waits for the store any more.
        shared.close();
    }
    writer.serve();
    shared.closed.close();
}

struct Writer {
    shared: Arc<Shared>,
    authorizer: Arc<Authorizer>,
    readers: Readers,
    // Dropped behind everything that works on the file.
    session: Option<Session>,
    lock: FileLock,
}

impl Writer {
    fn open(options: SqliteOptions, given_up: impl Fn() -> bool) -> Result<Self, StoreError> {
        let clock = Arc::new(crate::clock::Clock::new());
        connection::check_folder(&options.path)?;
        let lock = FileLock::take(&options, &clock, given_up)?;
        let guard = Authorizer::new(Arc::clone(&clock));
        let mut conn = connection::open_writer(&options)?;
        crate::schema::migrate(&mut conn, &options.path, clock.now())?;
        let ids = recovery::reserve_ids(&mut conn).map_err(|error| crate::error::open_error(&options.path, error))?;
        let behind = recovery::clock_behind(&conn, clock.now())
            .map_err(|error| crate::error::open_error(&options.path, error))?;
        if let Some(behind) = behind {
            tracing::warn!(
                path = %options.path.display(),
                ?behind,
                "the machine's clock is behind the newest entry of the store; what waits there for a time waits until the \
                 clock is there again; set the clock right"
            );
        }
        let shared = Arc::new(Shared { clock_behind: behind, ..Shared::new(options, clock, ids, &guard) });
        let session = session(conn, &shared, &guard)?;
        let readers = Readers::spawn(&shared)?;
        Ok(Self { shared, authorizer: guard, readers, session: Some(session), lock })
    }

    fn serve(mut self) {
        let shared = Arc::clone(&self.shared);
        let options = &shared.options;
        let limits = Limits { jobs_max: options.group_jobs_max, time_max: options.group_time_max };
        while let Some(job) = shared.queue.wait() {
            let mut jobs = vec![job];
            shared.queue.take_waiting(&mut jobs, limits.jobs_max - 1);
            self.work_off(jobs, limits);
        }
        self.end();
    }

    fn work_off(&mut self, jobs: Vec<BoxedJob>, limits: Limits) {
        let session = match self.session() {
            Ok(session) => session,
            Err(error) => return refuse(jobs, &error),
        };
        let shared = Arc::clone(&session.shared);
        let worked = catch_unwind(AssertUnwindSafe(|| run_groups(session, jobs, &shared.queue, limits)));
        if !matches!(worked, Ok(ConnectionHealth::Healthy)) {
            // What is on the disk is read afresh, through a connection that remembers nothing.
            tracing::info!(path = %shared.options.path.display(), "the writer opens its connection again");
            self.session = None;
        }
    }

    /// The session, which is opened again if the last one broke.
    fn session(&mut self) -> Result<&mut Session, StoreError> {
        let session = if let Some(session) = self.session.take() {
            session
        } else {
            // SQLite would make an empty file in the place of one that was deleted.
            if let Some(lost) = self.shared.file_identity.lost_file() {
                return Err(lost.error("open"));
            }
            session(connection::open_writer(&self.shared.options)?, &self.shared, &self.authorizer)?
        };
        Ok(self.session.insert(session))
    }

    fn end(self) {
        let Self { readers, session, lock, .. } = self;
        // A reader would keep the write-ahead log from being emptied.
        readers.end();
        if let Some(session) = session {
            connection::close_writer(session.conn);
        }
        drop(lock);
    }
}

fn session(conn: Connection, shared: &Arc<Shared>, guard: &Arc<Authorizer>) -> Result<Session, StoreError> {
    let failed = |error| store_error("open", error);
    guard.install(&conn).map_err(failed)?;
    let owners = recovery::owners(&conn).map_err(failed)?;
    let mut session = Session::new(conn, Arc::clone(shared), Arc::clone(guard));
    session.owners = owners;
    Ok(session)
}

fn refuse(jobs: Vec<BoxedJob>, error: &StoreError) {
    let error = GroupError::of(error);
    for job in jobs {
        job.complete(Completion::Failed(&error));
    }
}

/// A thread that could not be started.
pub(crate) fn no_thread(error: std::io::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "open", format!("no thread could be started: {error}"))
        .with_source(error)
}
