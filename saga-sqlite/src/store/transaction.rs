//! The step transaction: claim, handlers, record. It runs in the group's transaction behind a savepoint.

use std::panic::{AssertUnwindSafe, catch_unwind};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _};
use saga_core::store::{
    Capabilities, Changes, Claim, Durability, HandlerVerdict, MovedSaga, NewSaga, RetryClass, SagaId, Status, Store,
    StoreError, StoreErrorKind, Timestamp, TransactError, TransactionBody, WorkKind,
};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::aborted::{AbortScope, Aborted, OPERATION, conflict};
use crate::error::{store_error, writer_ended};
use crate::options::Synchronous;
use crate::statements::changes::{refuse_duplicate_changes, write};
use crate::statements::rows::{self, signed};
use crate::statements::saga_rows::{CurrentProgress, current_progress, insert_progress, insert_saga, saga_by_id};
use crate::statements::taken_locks::TakenLocks;
use crate::store::store::SqliteStore;
use crate::writer::job::{Completion, Job, JobFlow, drop_callers_value, panicked, unanswered};
use crate::writer::savepoints::Savepoints;
use crate::writer::session::Session;

/// How often sagas may move while a body decides. No other transaction writes meanwhile, so once is enough.
const DECISIONS_MAX: usize = 4;

/// More claims in one step transaction do not make it faster: the writer puts many step transactions into one commit.
const BATCH_MAX: usize = 16;

#[async_trait]
impl Store for SqliteStore {
    type Conn = Connection;

    fn capabilities(&self) -> Capabilities {
        let durability = match self.shared().options.synchronous {
            Synchronous::Full => Durability::Full,
            Synchronous::Normal => Durability::Process("synchronous=NORMAL".to_owned()),
        };
        Capabilities::database("sqlite", durability, BATCH_MAX)
    }

    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<Connection>>,
    ) -> Result<(), TransactError> {
        let _held = self.shared().clock.hold();
        let (reply, answer) = oneshot::channel();
        self.send("transact", Box::new(Transact::new(claims, body, reply)))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended("transact").into()))
    }
}

/// One step transaction as a job.
pub(crate) struct Transact {
    claims: Vec<Claim>,
    body: Box<dyn TransactionBody<Connection>>,
    /// The runtime of the caller, so that handlers can use timers and sockets.
    runtime: Option<Handle>,
    savepoints: Savepoints,
    answer: Option<Result<(), TransactError>>,
    reply: oneshot::Sender<Result<(), TransactError>>,
}

impl Transact {
    pub(crate) fn new(
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<Connection>>,
        reply: oneshot::Sender<Result<(), TransactError>>,
    ) -> Self {
        Self {
            claims,
            body,
            runtime: Handle::try_current().ok(),
            savepoints: Savepoints::default(),
            answer: None,
            reply,
        }
    }

    fn transact(&mut self, session: &mut Session) -> Result<(), Aborted> {
        let mut all_progress = Vec::with_capacity(self.claims.len());
        let mut granted = Vec::with_capacity(self.claims.len());
        self.savepoints = Savepoints::default();
        let mut locks = TakenLocks::take(&session.conn, &self.claims)?;
        for (index, claim) in self.claims.iter().enumerate() {
            let progress = match &claim.start {
                _ if !locks.has_required(claim, index) => None,
                None => grant(&session.conn, claim)?,
                Some(saga) => begin(session, saga)?,
            };
            if progress.is_some_and(|progress| progress.is_new) {
                self.savepoints.note_write();
            }
            granted.push(progress.is_some());
            all_progress.extend(progress.map(|progress| (claim.saga, progress)));
        }
        self.body.granted(&granted);
        for (index, taken) in locks.drain() {
            self.body.locked(index, taken);
        }
        if all_progress.is_empty() {
            return Ok(());
        }
        for index in (0..granted.len()).filter(|index| granted[*index]) {
            let mut goes_on = !self.body.has_run(index);
            while goes_on {
                goes_on = matches!(
                    self.handle(session, index)?,
                    HandlerVerdict::KeepAndContinue | HandlerVerdict::UndoAndContinue
                );
            }
        }
        self.savepoints.close_handler(session)?;
        locks.record(&session.conn)?;
        self.record(session, &all_progress)?;
        self.savepoints.release_job(session)
    }

    /// Runs the next handler of a claim, behind a savepoint if it needs one.
    fn handle(&mut self, session: &mut Session, index: usize) -> Result<HandlerVerdict, Aborted> {
        if self.body.needs_savepoint(index) {
            self.savepoints.set(session)?;
        }
        self.savepoints.note_write();
        let limit = self.body.time_limit(index);
        let body = &mut self.body;
        let ran =
            catch_unwind(AssertUnwindSafe(|| session.run_guarded(limit, async |conn| body.run(index, conn).await)));
        let verdict = match ran {
            Ok(verdict) => verdict.unwrap_or(HandlerVerdict::Abandon),
            Err(panic) => return Err(Aborted::blame(index, panicked(OPERATION, &*panic), AbortScope::Job)),
        };
        check_transaction(session, index)?;
        match verdict {
            HandlerVerdict::Keep | HandlerVerdict::KeepAndContinue => self.savepoints.keep(),
            HandlerVerdict::RollBack | HandlerVerdict::UndoAndContinue => self.savepoints.roll_back(session)?,
            HandlerVerdict::Conflict => return Err(conflict("a handler met another transaction".to_owned()).into()),
            HandlerVerdict::Abandon => {
                let error = StoreError::new(StoreErrorKind::Other, OPERATION, "a handler was dropped before its end");
                return Err(Aborted::blame(index, error.with_class(RetryClass::Transient), AbortScope::Job));
            }
        }
        Ok(verdict)
    }

    fn record(&mut self, session: &mut Session, granted: &[(SagaId, CurrentProgress)]) -> Result<(), Aborted> {
        let now = session.now();
        let mut changes = self.body.changes();
        for _ in 0..DECISIONS_MAX {
            refuse_duplicate_changes(OPERATION, &changes)?;
            let (all_progress, moved) = compare(&session.conn, &changes, granted)?;
            if moved.is_empty() {
                for (change, progress) in changes.iter().zip(all_progress) {
                    write(session, change, progress, now)?.map_err(conflict)?;
                }
                return self.finish_starts(session, &changes, granted, now);
            }
            changes = self
                .body
                .decide_again(moved)
                .ok_or_else(|| conflict("the steps that ran do not fit the saga any more".to_owned()))?;
        }
        Err(conflict("a saga was decided on a version that it never had".to_owned()).into())
    }
}

impl Transact {
    /// Writes the progress of sagas that were started and did not move.
    fn finish_starts(
        &self,
        session: &Session,
        changes: &[Changes],
        granted: &[(SagaId, CurrentProgress)],
        now: Timestamp,
    ) -> Result<(), Aborted> {
        for saga in self.claims.iter().filter_map(|claim| claim.start.as_ref()) {
            let is_granted = granted.iter().any(|(id, _)| *id == saga.id);
            let has_moved =
                changes.iter().any(|change| change.saga.as_ref().is_some_and(|advance| advance.id == saga.id));
            if is_granted && !has_moved {
                insert_progress(&session.conn, saga.id, saga, now)?;
            }
        }
        Ok(())
    }
}

impl Job for Transact {
    fn run(&mut self, session: &mut Session) -> JobFlow {
        let runtime = self.runtime.clone();
        let _entered = runtime.as_ref().map(Handle::enter);
        let ran = catch_unwind(AssertUnwindSafe(|| self.transact(session)));
        let stopped = match ran {
            Ok(Ok(())) => {
                self.answer = Some(Ok(()));
                return JobFlow::Continue;
            }
            Ok(Err(stopped)) => stopped,
            Err(panic) => Aborted::from(panicked(OPERATION, &*panic)),
        };
        self.answer = Some(Err(stopped.error));
        match stopped.scope {
            AbortScope::Group => JobFlow::RetryAlone,
            AbortScope::Permanent => JobFlow::Fail,
            AbortScope::Job => self.savepoints.undo_job(session),
        }
    }

    fn complete(self: Box<Self>, completion: Completion<'_>) {
        let Self { claims, body, answer, reply, .. } = *self;
        drop_callers_value(body);
        let answer = match completion {
            Completion::Answered => answer.unwrap_or_else(|| Err(unanswered(OPERATION).into())),
            Completion::Failed(error) => {
                // Alone in its transaction, the only handler is to blame for a refused commit.
                let error = error.error(OPERATION);
                let is_to_blame = claims.len() == 1 && error.kind() == StoreErrorKind::Other;
                Err(TransactError { error, culprit: is_to_blame.then_some(0), ended_transaction: false })
            }
        };
        // The caller may have dropped its future.
        _ = reply.send(answer);
    }
}

/// The progress of the claim's saga, if the claim is granted.
fn grant(conn: &Connection, claim: &Claim) -> rusqlite::Result<Option<CurrentProgress>> {
    let row = conn
        .prepare_cached(
            "SELECT p.status, p.version FROM saga_work w, saga_progress p WHERE w.id = ?1 AND w.epoch = ?2 \
             AND p.id = ?3 AND NOT EXISTS (SELECT 1 FROM saga_records WHERE tenant = ?4 AND key = ?5 AND step = ?6)",
        )?
        .query_row(
            (
                claim.work.id.0,
                signed(claim.work.epoch),
                claim.saga.0,
                claim.tenant.as_str(),
                claim.key.as_str(),
                claim.step.as_str(),
            ),
            |row| {
                Ok(CurrentProgress { status: rows::status(row, 0)?, version: rows::unsigned(row, 1)?, is_new: false })
            },
        )
        .optional()?;
    let wanted = match claim.kind {
        WorkKind::Do | WorkKind::Deadline => Status::Running,
        WorkKind::Undo => Status::Compensating,
    };
    Ok(row.filter(|progress| progress.status == wanted))
}

/// Starts the saga of a claim, without its progress: that is written when it is decided.
fn begin(session: &mut Session, saga: &NewSaga) -> Result<Option<CurrentProgress>, Aborted> {
    let now = session.now();
    let definition = session.definitions.number(&session.conn, &saga.definition)?;
    let is_new = insert_saga(&session.conn, saga, saga.id, definition, now)?;
    Ok(is_new.then_some(CurrentProgress { status: Status::Running, version: 1, is_new: true }))
}

/// Checks what a handler did to the transaction.
fn check_transaction(session: &Session, index: usize) -> Result<(), Aborted> {
    let is_gone = session.conn.is_autocommit();
    if session.authorizer.tried_to_end_transaction() {
        let error =
            StoreError::new(StoreErrorKind::Misuse, OPERATION, "a handler ended the transaction that it was given");
        let mut stopped = Aborted::blame(index, error, if is_gone { AbortScope::Permanent } else { AbortScope::Job });
        stopped.error.ended_transaction = true;
        return Err(stopped);
    }
    if !is_gone {
        return Ok(());
    }
    // SQLite rolled back by itself. A time limit is the handler's own fault; a full disk may be the fault of another
    // job.
    let (detail, stop) = if session.authorizer.was_interrupted() {
        ("a statement ran past the handler's time limit, and SQLite rolled back", AbortScope::Permanent)
    } else {
        ("SQLite rolled the transaction back by itself", AbortScope::Group)
    };
    let error = StoreError::new(StoreErrorKind::Unavailable, OPERATION, detail);
    Err(Aborted::blame(index, error, stop))
}

/// The progress of the sagas of these changes, and the sagas that have moved.
fn compare(
    conn: &Connection,
    changes: &[Changes],
    granted: &[(SagaId, CurrentProgress)],
) -> Result<(Vec<Option<CurrentProgress>>, Vec<MovedSaga>), Aborted> {
    let mut all_progress = Vec::with_capacity(changes.len());
    let mut moved = Vec::new();
    for change in changes {
        let Some(advance) = &change.saga else {
            all_progress.push(None);
            continue;
        };
        let known = granted.iter().find(|(saga, _)| *saga == advance.id).map(|(_, progress)| *progress);
        let progress = match known {
            Some(progress) => progress,
            None => current_progress(conn, OPERATION, advance.id)?,
        };
        if progress.version != advance.expected {
            let saga = saga_by_id(conn, advance.id)?;
            let records = rows::records_of_steps(conn, saga.tenant.as_str(), saga.key.as_str());
            moved.push(MovedSaga { saga, records: records.map_err(|error| store_error(OPERATION, error))? });
        }
        all_progress.push(Some(progress));
    }
    Ok((all_progress, moved))
}
