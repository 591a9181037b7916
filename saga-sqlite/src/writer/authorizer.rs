//! Supervises foreign SQL: time limits, and attempts to end the transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization, TransactionOperation};

use crate::clock::Clock;

/// The number of SQLite instructions between two checks of the deadline.
const PROGRESS_OPS: i32 = 2_000;
/// No time limit.
const NEVER: u64 = u64::MAX;
/// The prefix of the store's savepoints.
const SAVEPOINT_PREFIX: &str = "saga_";
/// Pragmas whose argument says what to read, not what to set.
const READING_PRAGMAS: [&str; 12] = [
    "defer_foreign_keys",
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "optimize",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Supervises one connection. All of this runs on the writer thread; the atomics only let the hooks share it.
#[derive(Debug)]
pub(crate) struct Authorizer {
    clock: Arc<Clock>,
    deadline_nanos: AtomicU64,
    runs_foreign_sql: AtomicBool,
    may_commit: AtomicBool,
    tried_to_end: AtomicBool,
    interrupted: AtomicBool,
    commits: AtomicU64,
}

impl Authorizer {
    pub(crate) fn new(clock: Arc<Clock>) -> Arc<Self> {
        Arc::new(Self {
            clock,
            deadline_nanos: AtomicU64::new(NEVER),
            runs_foreign_sql: AtomicBool::new(false),
            may_commit: AtomicBool::new(false),
            tried_to_end: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            commits: AtomicU64::new(0),
        })
    }

    /// Installs the hooks on a connection.
    pub(crate) fn install(self: &Arc<Self>, conn: &Connection) -> rusqlite::Result<()> {
        let authorizer = Arc::clone(self);
        conn.commit_hook(Some(move || authorizer.rejects_commit()))?;
        let authorizer = Arc::clone(self);
        conn.progress_handler(PROGRESS_OPS, Some(move || authorizer.is_past_deadline()))?;
        let authorizer = Arc::clone(self);
        conn.authorizer(Some(move |context: AuthContext<'_>| authorizer.authorize(&context)))
    }

    /// Foreign SQL begins, and may take until `deadline` on the clock's `elapsed`.
    pub(crate) fn begin_foreign_sql(&self, deadline: Option<Duration>) {
        let nanos = deadline.and_then(|deadline| u64::try_from(deadline.as_nanos()).ok()).unwrap_or(NEVER);
        self.deadline_nanos.store(nanos, Ordering::Relaxed);
        self.tried_to_end.store(false, Ordering::Relaxed);
        self.interrupted.store(false, Ordering::Relaxed);
        self.runs_foreign_sql.store(true, Ordering::Relaxed);
    }

    /// The store's own SQL follows.
    pub(crate) fn end_foreign_sql(&self) {
        self.runs_foreign_sql.store(false, Ordering::Relaxed);
        self.deadline_nanos.store(NEVER, Ordering::Relaxed);
    }

    /// Whether foreign SQL tried to end the transaction since it began.
    pub(crate) fn tried_to_end_transaction(&self) -> bool {
        self.tried_to_end.load(Ordering::Relaxed)
    }

    /// Whether a statement of foreign SQL reached the time limit since it began.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Allows or forbids a commit: only the store's own is allowed.
    pub(crate) fn allow_commit(&self, allowed: bool) {
        self.may_commit.store(allowed, Ordering::Relaxed);
    }

    /// Commits that wrote something.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    fn rejects_commit(&self) -> bool {
        if self.may_commit.load(Ordering::Relaxed) {
            self.commits.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.tried_to_end.store(true, Ordering::Relaxed);
        true
    }

    fn is_past_deadline(&self) -> bool {
        let deadline = self.deadline_nanos.load(Ordering::Relaxed);
        let is_over = deadline != NEVER && self.clock.elapsed().as_nanos() >= u128::from(deadline);
        if is_over {
            self.interrupted.store(true, Ordering::Relaxed);
        }
        is_over
    }

    fn authorize(&self, context: &AuthContext<'_>) -> Authorization {
        if !self.runs_foreign_sql.load(Ordering::Relaxed) {
            return Authorization::Allow;
        }
        match context.action {
            // SQLite refuses a BEGIN inside a transaction itself, with a well known error.
            AuthAction::Transaction { operation: TransactionOperation::Begin } => Authorization::Allow,
            AuthAction::Transaction { .. } => self.deny_end(),
            AuthAction::Savepoint { savepoint_name, .. } if is_own(savepoint_name) => self.deny_end(),
            AuthAction::Attach { .. } | AuthAction::Detach { .. } => Authorization::Deny,
            AuthAction::Pragma { pragma_name, pragma_value: Some(_) } if !READING_PRAGMAS.contains(&pragma_name) => {
                Authorization::Deny
            }
            _ => Authorization::Allow,
        }
    }

    fn deny_end(&self) -> Authorization {
        self.tried_to_end.store(true, Ordering::Relaxed);
        Authorization::Deny
    }
}

/// Whether this is one of the store's savepoints. To SQLite their names are the same in capital letters.
fn is_own(savepoint: &str) -> bool {
    savepoint.get(..SAVEPOINT_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(SAVEPOINT_PREFIX))
}
