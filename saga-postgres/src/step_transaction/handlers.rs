//! What happens inside a step transaction: rows are claimed, handlers run behind savepoints, and what became of them is
//! recorded by one statement.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use saga_core::store::{Claim, HandlerVerdict, MovedSaga, RetryClass, SagaId, StoreError, StoreErrorKind};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::error::{
    Commits, FAILED_TRANSACTION, NO_SAVEPOINT, NO_TRANSACTION, REFUSED_COMMIT, conflict, is_unwritable, sql_state,
    store_error,
};
use crate::fault_injection::Mutant;
use crate::step_transaction::aborted::{Aborted, Body, OPERATION};
use crate::step_transaction::grant::{Granted, grant, keep_unmoved_sagas};
use crate::step_transaction::taken_locks::{TakenLocks, keep_locks, take_locks};
use crate::store::changes::{
    Obstacle, ObstacleKind, WriteOutcome, definitions, refuse_duplicate_changes, split_by_rows,
};
use crate::store::lock_wait::LockWait;
use crate::store::lock_wait::millis;
use crate::store::store::PostgresStore;

/// How often sagas may move while a body decides. They are held from the first time on, so that one time is enough.
const DECISIONS_MAX: usize = 4;
/// By how much the server waits longer than a handler may take, before it takes its process for stopped.
const GRACE: Duration = Duration::from_secs(5);

/// Writes outside of the transaction are refused: a handler that sent `ROLLBACK` would write there. The session is set
/// read-only in a transaction of its own, since that rollback would undo the setting; the record statement resets it.
const READ_ONLY_OUTSIDE_BEGIN: &str = "BEGIN; SET default_transaction_read_only = on; COMMIT; \
     BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL saga.guarded = 'on'";

/// Which handlers get a savepoint in front of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Savepoints {
    /// All.
    All,
    /// Those for which the body asks for one.
    Needed,
}

/// The state of the last savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Savepoint {
    /// There is none.
    Unset,
    /// It is set, and nothing was written after it.
    Set,
    /// Handlers have written after it.
    Used,
}

/// Opens the transaction by one message. For a lone command it includes the savepoint.
pub(crate) fn begin_statement(store: &PostgresStore, claims: &[Claim], body: &Body) -> String {
    let limit = longest(claims, body);
    let options = &store.shared().options;
    let savepoint =
        if begins_with_savepoint(claims) { format!("; SAVEPOINT {}", store.shared().savepoint) } else { String::new() };
    // A key that another transaction is about to take is not waited for here, since a worker would be blocked: see
    // `grant`.
    let is_start =
        claims.iter().any(|claim| claim.start.is_some()) && !store.is_mutant(Mutant::WaitsForLocksWithoutLimit);
    let lock_timeout = if claims.len() == 1 && !is_start { limit } else { options.batch_lock_timeout };
    let check = if store.shared().checks_clients { "; SET LOCAL client_connection_check_interval = 1000" } else { "" };
    let begin = if store.blocks_writes_outside() { READ_ONLY_OUTSIDE_BEGIN } else { options.begin() };
    format!("{begin}; SET LOCAL lock_timeout = {}; {}{check}{savepoint}", millis(lock_timeout), limits(limit))
}

/// Grants, runs and records; answers which commands were granted, and whether no handler of them needed a savepoint.
pub(crate) async fn run(
    store: &PostgresStore,
    conn: &mut PgConnection,
    claims: &[Claim],
    body: &mut Body,
    savepoints: Savepoints,
) -> Result<(Vec<usize>, bool), Aborted> {
    let limit = longest(claims, body);
    let locks = take_locks(store, conn, claims).await?;
    let granted = grant(store, conn, claims, &locks, limit).await?;
    body.granted(&granted.claims);
    for (index, taken) in locks {
        body.locked(index, taken);
    }
    let indexes: Vec<usize> = (0..claims.len()).filter(|index| granted.claims[*index]).collect();
    let Some(mut last) = indexes.last().copied() else { return Ok((indexes, true)) };
    let mut handlers = Handlers::new(store, claims, savepoints, limit);
    for index in &indexes {
        if !body.has_run(*index) {
            handlers.handle_all(conn, body, *index).await?;
            last = *index;
        }
    }
    let had_no_savepoint = handlers.had_no_savepoint;
    record(store, conn, claims, body, &granted, last).await?;
    Ok((indexes, had_no_savepoint))
}

/// Whether the savepoint of a lone command is set with the begin. A rollback to it would release the locks of its steps.
fn begins_with_savepoint(claims: &[Claim]) -> bool {
    matches!(claims, [claim] if claim.locks.is_empty())
}

struct Handlers<'a> {
    store: &'a PostgresStore,
    claims: &'a [Claim],
    savepoints: Savepoints,
    savepoint: Savepoint,
    /// Whether a rollback to the savepoint also releases the granted rows.
    is_before_claim: bool,
    /// The statement timeout that is set on the server.
    limit: Duration,
    /// The same after a rollback to the savepoint.
    limit_before: Duration,
    /// The handler whose writes are after the savepoint.
    before: Option<usize>,
    /// Whether no handler needed a savepoint.
    had_no_savepoint: bool,
}

impl<'a> Handlers<'a> {
    fn new(store: &'a PostgresStore, claims: &'a [Claim], savepoints: Savepoints, limit: Duration) -> Self {
        // The savepoint of a lone command was set with the begin.
        let is_lone = begins_with_savepoint(claims);
        Self {
            store,
            claims,
            savepoints,
            savepoint: if is_lone { Savepoint::Set } else { Savepoint::Unset },
            is_before_claim: is_lone,
            limit,
            limit_before: limit,
            before: None,
            had_no_savepoint: true,
        }
    }

    /// Runs the handlers of a claim.
    async fn handle_all(&mut self, conn: &mut PgConnection, body: &mut Body, index: usize) -> Result<(), Aborted> {
        while matches!(
            self.handle(conn, body, index).await?,
            HandlerVerdict::KeepAndContinue | HandlerVerdict::UndoAndContinue
        ) {}
        Ok(())
    }

    /// Runs the next handler of a claim, behind a savepoint if it needs one.
    async fn handle(
        &mut self,
        conn: &mut PgConnection,
        body: &mut Body,
        index: usize,
    ) -> Result<HandlerVerdict, Aborted> {
        let is_needed = match self.savepoints {
            Savepoints::All => true,
            Savepoints::Needed => body.needs_savepoint(index),
        };
        self.had_no_savepoint &= !is_needed;
        self.set_savepoint(conn, is_needed, body.time_limit(index)).await?;
        let verdict = run_caught(body, index, conn).await?;
        if verdict != HandlerVerdict::Abandon && !conn.is_in_transaction() {
            return Err(Aborted::ended(index));
        }
        self.before = Some(index);
        match verdict {
            HandlerVerdict::Keep | HandlerVerdict::KeepAndContinue => self.use_savepoint(),
            HandlerVerdict::RollBack | HandlerVerdict::UndoAndContinue
                if self.store.is_mutant(Mutant::KeepsRejectedWrites) =>
            {
                self.use_savepoint();
            }
            HandlerVerdict::RollBack | HandlerVerdict::UndoAndContinue if self.savepoint == Savepoint::Unset => {
                return Err(conflict(OPERATION, "a handler failed and had no savepoint to go back to").into());
            }
            HandlerVerdict::RollBack | HandlerVerdict::UndoAndContinue => {
                let back = format!("ROLLBACK TO SAVEPOINT {}", self.store.shared().savepoint);
                let back = conn.execute(sqlx::raw_sql(AssertSqlSafe(back))).await;
                back.map_err(|error| savepoint_error(error, index))?;
                if self.is_before_claim {
                    self.regrant(conn).await?;
                }
                (self.savepoint, self.limit) = (Savepoint::Set, self.limit_before);
            }
            HandlerVerdict::Conflict => {
                return Err(conflict(OPERATION, "a statement of a handler conflicted with another transaction").into());
            }
            HandlerVerdict::Abandon => {
                let error = StoreError::new(StoreErrorKind::Other, OPERATION, "a handler was dropped before its end");
                return Err(Aborted::blame(index, error.with_class(RetryClass::Transient)).breaking_connection());
            }
        }
        Ok(verdict)
    }

    fn use_savepoint(&mut self) {
        if self.savepoint == Savepoint::Set {
            self.savepoint = Savepoint::Used;
        }
    }

    /// Sets the savepoint and the statement timeout for a handler with this time limit, if needed.
    async fn set_savepoint(
        &mut self,
        conn: &mut PgConnection,
        is_needed: bool,
        limit: Duration,
    ) -> Result<(), Aborted> {
        let is_set = !is_needed || self.savepoint == Savepoint::Set;
        if is_set && limit <= self.limit {
            return Ok(());
        }
        let longer = if limit > self.limit { format!("{}; ", limits(limit)) } else { String::new() };
        self.limit = self.limit.max(limit);
        let name = &self.store.shared().savepoint;
        let statement = match self.savepoint {
            _ if !is_needed => longer,
            Savepoint::Unset => format!("{longer}SAVEPOINT {name}"),
            Savepoint::Set | Savepoint::Used => format!("RELEASE SAVEPOINT {name}; {longer}SAVEPOINT {name}"),
        };
        let set = conn.execute(sqlx::raw_sql(AssertSqlSafe(statement))).await;
        set.map_err(|error| match self.before {
            // The handler before caused this error.
            Some(before) => savepoint_error(error, before),
            None => store_error(OPERATION, error).into(),
        })?;
        if is_needed {
            (self.savepoint, self.is_before_claim, self.limit_before) = (Savepoint::Set, false, self.limit);
        }
        Ok(())
    }

    /// Grants again the claims that were released with the savepoint. Another transaction may have taken the row
    /// meanwhile.
    async fn regrant(&self, conn: &mut PgConnection) -> Result<(), Aborted> {
        let granted = grant(self.store, conn, self.claims, &TakenLocks::default(), self.limit_before).await?;
        if granted.claims.contains(&false) {
            return Err(
                conflict(OPERATION, "another transaction took the row of a handler that was rolled back").into()
            );
        }
        Ok(())
    }
}

/// Records what the body decides. `last` ran last, and is to blame if it left the transaction failed.
async fn record(
    store: &PostgresStore,
    conn: &mut PgConnection,
    claims: &[Claim],
    body: &mut Body,
    granted: &Granted,
    last: usize,
) -> Result<(), Aborted> {
    let mut changes = body.changes();
    let failed = |error| record_error(error, last, claims.len());
    for _ in 0..DECISIONS_MAX {
        keep_unmoved_sagas(claims, &granted.started, &mut changes);
        if !store.is_mutant(Mutant::AcceptsTwoChangesOfOneSaga) {
            refuse_duplicate_changes(OPERATION, &changes)?;
        }
        let mut moved: Vec<SagaId> = Vec::new();
        for (number, part) in split_by_rows(&changes).into_iter().enumerate() {
            let part = &changes[part];
            let numbers =
                store.number_definitions(conn, OPERATION, definitions(part), LockWait::AsInTransaction, false).await;
            let numbers = numbers.map_err(failed)?;
            let written = store.write_changes(conn, OPERATION, Some(granted), part, &numbers, Commits::Later).await;
            let obstacles = match written.map_err(failed)? {
                WriteOutcome::Obstacles(obstacles) => obstacles,
                WriteOutcome::OutsideTransaction => return Err(Aborted::ended(last)),
            };
            if let Some(other) = obstacles.iter().find(|obstacle| obstacle.moved().is_none() || number > 0) {
                return Err(conflict(OPERATION, describe(other)).into());
            }
            moved.extend(obstacles.iter().filter_map(Obstacle::moved));
            if !moved.is_empty() {
                break;
            }
        }
        if moved.is_empty() {
            keep_locks(store, conn, &changes).await.map_err(failed)?;
            return store.unlock(conn, OPERATION, changes.iter()).await.map_err(failed);
        }
        store.shared().statistics.decided_again.add(1);
        // The sagas are locked now, and move no further.
        let rows = store.sagas_with_records(conn, OPERATION, &moved).await.map_err(failed)?;
        let rows = rows.into_iter().map(|(saga, records)| MovedSaga { saga, records }).collect();
        changes = body
            .decide_again(rows)
            .ok_or_else(|| conflict(OPERATION, "the steps that ran do not fit the saga any more"))?;
    }
    Err(conflict(OPERATION, "a saga was decided on a version that it never had").into())
}

/// Runs the next handler of a claim, and catches its panic.
async fn run_caught(body: &mut Body, index: usize, conn: &mut PgConnection) -> Result<HandlerVerdict, Aborted> {
    // The body works only while it is polled.
    let mut running = Box::pin(async move { body.run(index, conn).await });
    let ran = poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(verdict)) => Poll::Ready(Some(verdict)),
        Err(_) => Poll::Ready(None),
    })
    .await;
    ran.ok_or_else(|| Aborted::panicked(index))
}

fn longest(claims: &[Claim], body: &Body) -> Duration {
    (0..claims.len()).map(|index| body.time_limit(index)).max().unwrap_or_default()
}

/// Sets the timeouts of a statement, and of a pause between two statements.
fn limits(limit: Duration) -> String {
    let millis = millis(limit.saturating_add(GRACE));
    format!("SET LOCAL statement_timeout = {millis}; SET LOCAL idle_in_transaction_session_timeout = {millis}")
}

/// A savepoint could not be set or rolled back to: the error shows what the handler did to the transaction.
fn savepoint_error(error: sqlx::Error, index: usize) -> Aborted {
    match sql_state(&error).as_deref() {
        Some(NO_TRANSACTION | NO_SAVEPOINT | REFUSED_COMMIT) => Aborted::ended(index),
        Some(FAILED_TRANSACTION) => Aborted::failed(index),
        _ => store_error(OPERATION, error).into(),
    }
}

/// A statement of the store failed after the last handler. The transaction was writable when its rows were granted, so
/// a server that became read-only is not the reason.
fn record_error(error: StoreError, last: usize, claims: usize) -> Aborted {
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<sqlx::Error>());
    match source.and_then(sql_state).as_deref() {
        Some(FAILED_TRANSACTION) => Aborted::failed(last),
        // In a batch the handler to blame is unknown: the claims run again in halves.
        Some(state) if is_unwritable(state) => Aborted::unwritable(&error, (claims == 1).then_some(last)),
        _ => error.into(),
    }
}

fn describe(obstacle: &Obstacle) -> String {
    match &obstacle.kind {
        ObstacleKind::Work(id) => format!("work row {} is gone", id.0),
        ObstacleKind::Late(id, _) => format!("a late success was noted on work row {}", id.0),
        ObstacleKind::Record(step) => format!("there is a record of {step} already"),
        ObstacleKind::Saga(saga) => format!("saga {saga} has moved"),
        ObstacleKind::KeyTaken => "the key of a saga to start is taken".to_owned(),
        ObstacleKind::NoSaga(saga) => format!("there is no saga {saga}"),
    }
}
