//! The state of the writer thread that a job works with.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use rusqlite::Connection;
use saga_core::store::{MemberId, Timestamp};

use crate::clock::Clock;
use crate::shared::Shared;
use crate::statements::definition_numbers::DefinitionNumbers;
use crate::writer::authorizer::Authorizer;

/// The writer's connection and its state.
pub(crate) struct Session {
    pub(crate) conn: Connection,
    pub(crate) shared: Arc<Shared>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) definitions: DefinitionNumbers,
    /// Members that hold, or held, a lease.
    pub(crate) owners: Vec<MemberId>,
    /// Whether foreign SQL got past the authorizer, so that the connection must be opened again.
    pub(crate) was_tampered: bool,
    poller: Poller,
}

impl Session {
    pub(crate) fn new(conn: Connection, shared: Arc<Shared>, authorizer: Arc<Authorizer>) -> Self {
        let poller = Poller::new(Arc::clone(&shared.clock));
        Self {
            conn,
            shared,
            authorizer,
            definitions: DefinitionNumbers::default(),
            owners: Vec::new(),
            was_tampered: false,
            poller,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Remembers the owner of a lease, so that a claim can check whether it is still alive.
    pub(crate) fn note_owner(&mut self, owner: MemberId) {
        if !self.owners.contains(&owner) {
            self.owners.push(owner);
        }
    }

    /// Runs foreign SQL, and polls it on this thread. `None` if it took longer than `limit` and was dropped, a short
    /// time after its statements began to be interrupted.
    pub(crate) fn run_guarded<'a, T>(
        &'a mut self,
        limit: Duration,
        run: impl AsyncFnOnce(&'a mut Connection) -> T,
    ) -> Option<T> {
        let Self { conn, authorizer, poller, shared, .. } = self;
        let deadline = shared.clock.elapsed().checked_add(limit);
        let _watch = ForeignSql::begin(authorizer, deadline);
        let given_up = deadline.and_then(|deadline| deadline.checked_add(GRACE));
        let future = std::pin::pin!(run(conn));
        poller.poll(future, given_up)
    }

    /// Undoes the writes since this savepoint, which stays.
    pub(crate) fn roll_back_to(&mut self, savepoint: Savepoint) -> rusqlite::Result<()> {
        self.definitions.on_rollback();
        self.conn.prepare_cached(savepoint.roll_back)?.execute(())?;
        Ok(())
    }

    pub(crate) fn set(&self, savepoint: Savepoint) -> rusqlite::Result<()> {
        self.shared.statistics.savepoint();
        self.conn.prepare_cached(savepoint.set)?.execute(())?;
        Ok(())
    }

    pub(crate) fn release(&self, savepoint: Savepoint) -> rusqlite::Result<()> {
        self.conn.prepare_cached(savepoint.release)?.execute(())?;
        Ok(())
    }
}

/// How long after its deadline a future may still end by itself: its own timer has the same deadline.
const GRACE: Duration = Duration::from_millis(250);

/// The statements of one savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Savepoint {
    set: &'static str,
    roll_back: &'static str,
    release: &'static str,
}

/// Around a job that could fail alone.
pub(crate) const JOB: Savepoint =
    Savepoint { set: "SAVEPOINT saga_job", roll_back: "ROLLBACK TO saga_job", release: "RELEASE saga_job" };
/// Around one handler of several, or several of one step.
pub(crate) const HANDLER: Savepoint =
    Savepoint { set: "SAVEPOINT saga_handler", roll_back: "ROLLBACK TO saga_handler", release: "RELEASE saga_handler" };

/// Marks SQL as foreign while it runs, also when it panics.
struct ForeignSql<'a>(&'a Authorizer);

impl<'a> ForeignSql<'a> {
    fn begin(authorizer: &'a Authorizer, deadline: Option<Duration>) -> Self {
        authorizer.begin_foreign_sql(deadline);
        Self(authorizer)
    }
}

impl Drop for ForeignSql<'_> {
    fn drop(&mut self) {
        self.0.end_foreign_sql();
    }
}

/// Polls futures on the writer thread. Nearly all of them are ready at the first poll.
struct Poller {
    waker: Waker,
    clock: Arc<Clock>,
}

impl Poller {
    fn new(clock: Arc<Clock>) -> Self {
        Self { waker: Waker::from(Arc::new(Unpark(std::thread::current()))), clock }
    }

    fn poll<T>(&self, mut future: Pin<&mut impl Future<Output = T>>, given_up: Option<Duration>) -> Option<T> {
        let mut context = Context::from_waker(&self.waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Some(output);
            }
            match given_up.map(|at| at.saturating_sub(self.clock.elapsed())) {
                None => std::thread::park(),
                Some(Duration::ZERO) => return None,
                Some(left) => std::thread::park_timeout(left),
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
