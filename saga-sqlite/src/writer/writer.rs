//! The writer thread: it opens the file, runs the jobs of the callers, and closes the file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use saga_core::store::StoreError;
use tokio::sync::oneshot;

use crate::error::{GroupError, open_error, store_error};
use crate::file::connection;
use crate::file::file_lock::FileLock;
use crate::options::SqliteOptions;
use crate::shared::Shared;
use crate::writer::authorizer::Authorizer;
use crate::writer::group_commit::{ConnectionHealth, Limits, run_groups};
use crate::writer::job::{BoxedJob, Completion};
use crate::writer::job_queues::{JobQueues, Opened};
use crate::writer::readers::Readers;
use crate::writer::recovery;
use crate::writer::session::Session;
use crate::writer::thread_role::{self, ThreadRole};

/// Opens the file on a new thread, which then is its writer.
pub(crate) fn spawn(
    options: SqliteOptions,
    opened: oneshot::Sender<Result<Opened, StoreError>>,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("saga-sqlite-write".to_owned()).spawn(move || run(options, opened))
}

fn run(options: SqliteOptions, opened: oneshot::Sender<Result<Opened, StoreError>>) {
    thread_role::set(ThreadRole::Writer);
    let writer = match Writer::open(options, || opened.is_closed()) {
        Ok(writer) => writer,
        Err(error) => {
            _ = opened.send(Err(error));
            return;
        }
    };
    let queues = Arc::clone(&writer.queues);
    if opened.send(Ok((Arc::clone(&writer.shared), Arc::clone(&queues)))).is_err() {
        // The caller of `open` is gone.
        queues.writes.close();
    }
    writer.serve();
    queues.file_freed.close();
}

struct Writer {
    shared: Arc<Shared>,
    queues: Arc<JobQueues>,
    authorizer: Arc<Authorizer>,
    readers: Readers,
    // Dropped after everything that works on the file.
    session: Option<Session>,
    lock: FileLock,
}

impl Writer {
    fn open(options: SqliteOptions, given_up: impl Fn() -> bool) -> Result<Self, StoreError> {
        let clock = Arc::new(crate::clock::Clock::new(options.clock.clone()));
        connection::check_folder(&options.path)?;
        let lock = FileLock::take(&options, &clock, given_up)?;
        let authorizer = Authorizer::new(Arc::clone(&clock));
        let mut conn = connection::open_writer(&options)?;
        crate::file::schema::migrate(&mut conn, &options.path, clock.now())?;
        let ids = recovery::reserve_ids(&mut conn).map_err(|error| open_error(&options.path, error))?;
        let behind = recovery::clock_behind(&conn, clock.now()).map_err(|error| open_error(&options.path, error))?;
        if let Some(behind) = behind {
            tracing::warn!(path = %options.path.display(), ?behind, "machine clock is behind the store");
        }
        let shared = Arc::new(Shared { clock_behind: behind, ..Shared::new(options, clock, ids, &authorizer) });
        let session = session(conn, &shared, &authorizer)?;
        let queues = Arc::new(JobQueues::new());
        let readers = Readers::spawn(&shared, &queues)?;
        Ok(Self { shared, queues, authorizer, readers, session: Some(session), lock })
    }

    fn serve(mut self) {
        let options = &self.shared.options;
        let limits = Limits { jobs_max: options.group_jobs_max, time_max: options.group_time_max };
        let queues = Arc::clone(&self.queues);
        while let Some(job) = queues.writes.wait() {
            let mut jobs = vec![job];
            queues.writes.take_waiting(&mut jobs, limits.jobs_max - 1);
            self.run(jobs, limits);
        }
        self.end();
    }

    fn run(&mut self, jobs: Vec<BoxedJob>, limits: Limits) {
        let queues = Arc::clone(&self.queues);
        let session = match self.session() {
            Ok(session) => session,
            Err(error) => return refuse(jobs, &error),
        };
        let shared = Arc::clone(&session.shared);
        let worked = catch_unwind(AssertUnwindSafe(|| run_groups(session, jobs, &queues.writes, limits)));
        if !matches!(worked, Ok(ConnectionHealth::Healthy)) {
            // A new connection reads the file without cached state.
            tracing::info!(path = %shared.options.path.display(), "writer connection reopened");
            self.session = None;
        }
    }

    /// The session, which is opened again if the last one broke.
    fn session(&mut self) -> Result<&mut Session, StoreError> {
        let session = if let Some(session) = self.session.take() {
            session
        } else {
            // SQLite would create an empty file in place of a deleted one.
            if let Some(lost) = self.shared.file_identity.lost_file() {
                return Err(lost.error("open"));
            }
            session(connection::open_writer(&self.shared.options)?, &self.shared, &self.authorizer)?
        };
        Ok(self.session.insert(session))
    }

    fn end(self) {
        let Self { readers, session, lock, .. } = self;
        // A reader would prevent the write-ahead log from being emptied.
        readers.end();
        if let Some(session) = session {
            connection::close_writer(session.conn);
        }
        drop(lock);
    }
}

fn session(conn: Connection, shared: &Arc<Shared>, authorizer: &Arc<Authorizer>) -> Result<Session, StoreError> {
    let failed = |error| store_error("open", error);
    authorizer.install(&conn).map_err(failed)?;
    let owners = recovery::owners(&conn).map_err(failed)?;
    let mut session = Session::new(conn, Arc::clone(shared), Arc::clone(authorizer));
    session.owners = owners;
    Ok(session)
}

fn refuse(jobs: Vec<BoxedJob>, error: &StoreError) {
    let error = GroupError::of(error);
    for job in jobs {
        job.complete(Completion::Failed(&error));
    }
}
