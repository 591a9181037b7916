//! The step transaction.

use async_trait::async_trait;

use super::store::unknown_commit;
use crate::memory::MemoryStore;
use crate::memory::commit_hook::{CommitFate, CommitPoint, PendingCommit};
use crate::memory::conn::{MemoryConn, Savepoint, TxState};
use crate::memory::statements::changes::{blocked, locks_of, miss, refuse_misuse};
use crate::memory::statements::taken_locks::{has_required, take_locks};
use crate::memory::tables::data::Data;
use crate::memory::tables::locks::{Lock, TxId};
use crate::store::{
    Capabilities, Changes, Claim, Durability, HandlerVerdict, LocksOfClaims, Miss, MovedSaga, NewSaga, RetryClass,
    Status, Store, StoreError, StoreErrorKind, TransactError, TransactionBody, WorkKind,
};

/// More claims in one transaction do not make it faster.
const BATCH_MAX: usize = 64;

type Body = Box<dyn TransactionBody<MemoryConn>>;

#[async_trait]
impl Store for MemoryStore {
    type Conn = MemoryConn;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            shared: true,
            persistent: false,
            ..Capabilities::database("memory", Durability::None, BATCH_MAX)
        }
    }

    /// Dropping the future rolls back and releases the locks: the connection does so when it is dropped.
    async fn transact(&self, claims: Vec<Claim>, mut body: Body) -> Result<(), TransactError> {
        self.shared.clock.note_call();
        self.ask_hook(CommitPoint::Reading("transact")).await?;
        let mut conn = MemoryConn::begin(&self.shared);
        let (granted, taken) = grant(&mut self.shared.lock(), &claims, &mut conn.starts, conn.tx);
        body.granted(&granted);
        for (index, taken) in taken {
            body.locked(index, taken);
        }
        if !granted.contains(&true) {
            return Ok(());
        }
        self.ask_hook(CommitPoint::Claimed).await?;
        let mut savepoint = conn.savepoint();
        for index in (0..granted.len()).filter(|index| granted[*index]) {
            let mut goes_on = !body.has_run(index);
            while goes_on {
                if body.needs_savepoint(index) {
                    savepoint = conn.savepoint();
                }
                let verdict = run(&mut conn, &mut body, index, savepoint).await?;
                goes_on = matches!(verdict, HandlerVerdict::KeepAndContinue | HandlerVerdict::UndoAndContinue);
                self.ask_hook(CommitPoint::Handled(index)).await?;
            }
        }
        let changes = self.prepare(&conn, &mut body).await?;
        self.finish(conn, changes).await
    }
}

impl MemoryStore {
    /// Decides the changes, and locks every row that they write.
    async fn prepare(&self, conn: &MemoryConn, body: &mut Body) -> Result<Vec<Changes>, StoreError> {
        let mut changes = body.changes();
        loop {
            match self.shared.when_unlocked(|data, _| hold(data, &changes, &conn.starts, conn.tx)).await? {
                moved if moved.is_empty() => return Ok(changes),
                moved => {
                    let decided = body.decide_again(moved);
                    changes = decided.ok_or_else(|| conflict("the steps that ran do not fit the saga any more"))?;
                }
            }
        }
    }

    async fn finish(&self, conn: MemoryConn, changes: Vec<Changes>) -> Result<(), TransactError> {
        let point = CommitPoint::Committing("transact");
        let pending = PendingCommit { conn, changes };
        if let Some(hook) = &self.hook {
            match hook.at(point).await {
                CommitFate::Proceed => {}
                CommitFate::Fail(error) => return Err(error.into()),
                CommitFate::InDoubt => {
                    hook.in_doubt(pending);
                    return Err(unknown_commit(point).into());
                }
            }
        }
        pending.commit();
        Ok(self.ask_hook(CommitPoint::Committed("transact")).await?)
    }
}

/// Runs one handler behind a savepoint.
async fn run(
    conn: &mut MemoryConn,
    body: &mut Body,
    index: usize,
    savepoint: Savepoint,
) -> Result<HandlerVerdict, TransactError> {
    let verdict = body.run(index, conn).await;
    let blame = |kind, detail: &str| TransactError {
        error: StoreError::new(kind, "transact", detail),
        culprit: Some(index),
        ended_transaction: false,
    };
    match conn.state {
        TxState::Ended => {
            let error = blame(StoreErrorKind::Misuse, "a handler ended the transaction that it was given");
            return Err(TransactError { ended_transaction: true, ..error });
        }
        TxState::Conflicted => return Err(conflict("a handler wrote a row that another transaction holds").into()),
        TxState::Open => {}
    }
    match verdict {
        HandlerVerdict::Keep | HandlerVerdict::KeepAndContinue => {}
        HandlerVerdict::RollBack | HandlerVerdict::UndoAndContinue => conn.roll_back_to(savepoint),
        HandlerVerdict::Conflict => return Err(conflict("a handler met another transaction").into()),
        HandlerVerdict::Abandon => {
            let mut error = blame(StoreErrorKind::Other, "a handler was dropped before its end");
            error.error = error.error.with_class(RetryClass::Transient);
            return Err(error);
        }
    }
    Ok(verdict)
}

/// Which claims are granted, and with which locks of their steps. Their rows are locked from here on.
fn grant(data: &mut Data, claims: &[Claim], starts: &mut Vec<NewSaga>, me: TxId) -> (Vec<bool>, LocksOfClaims) {
    let taken = take_locks(data, claims, me);
    let mut granted = Vec::with_capacity(claims.len());
    for (index, claim) in claims.iter().enumerate() {
        if !has_required(claim, index, &taken) {
            granted.push(false);
            continue;
        }
        if let Some(saga) = &claim.start {
            granted.push(take_key(data, saga, starts, me));
            continue;
        }
        let lock = Lock::Work(claim.work.id);
        let is_held = data.work.get(&claim.work.id).is_some_and(|row| row.epoch == claim.work.epoch);
        let wanted = match claim.kind {
            WorkKind::Do | WorkKind::Deadline => Status::Running,
            WorkKind::Undo => Status::Compensating,
        };
        let is_granted = is_held
            && data.locks.holder(&lock, None).is_none()
            && !data.has_record(&claim.tenant, &claim.key, &claim.step)
            && data.sagas.get(&claim.saga).is_some_and(|saga| saga.row.status == wanted);
        if is_granted {
            data.locks.take(lock, me);
        }
        granted.push(is_granted);
    }
    (granted, taken)
}

/// Locks the key of a saga that is started, unless the key is taken or another transaction holds it.
fn take_key(data: &mut Data, saga: &NewSaga, starts: &mut Vec<NewSaga>, me: TxId) -> bool {
    let lock = Lock::Key(saga.tenant.clone(), saga.key.clone());
    let is_free = data.locks.holder(&lock, None).is_none() && data.saga_of(&saga.tenant, &saga.key).is_none();
    if is_free {
        data.locks.take(lock, me);
        starts.push(saga.without_commands());
    }
    is_free
}

/// Locks all rows that the changes write, or answers which sagas have moved. Those are locked too, so that they move no
/// further.
fn hold(
    data: &mut Data,
    changes: &[Changes],
    starts: &[NewSaga],
    me: TxId,
) -> Option<Result<Vec<MovedSaga>, StoreError>> {
    if let Err(error) = refuse_misuse(data, "transact", changes, starts) {
        return Some(Err(error));
    }
    if let Some(holder) = blocked(data, changes, Some(me)) {
        if data.locks.is_waiting(holder) {
            return Some(Err(conflict("two transactions wait for each other")));
        }
        data.locks.wait(me);
        return None;
    }
    data.locks.stop_waiting(me);
    let mut moved = Vec::new();
    for change in changes {
        match miss(data, change, starts) {
            None => {}
            Some(Miss::Saga(saga)) => {
                let records = data.records_of_steps(&saga.tenant, &saga.key);
                moved.push(MovedSaga { saga: *saga, records });
            }
            Some(other) => return Some(Err(conflict(describe(&other)))),
        }
    }
    if moved.is_empty() {
        for lock in changes.iter().flat_map(locks_of) {
            data.locks.take(lock, me);
        }
    }
    for saga in &moved {
        data.locks.take(Lock::Saga(saga.saga.id), me);
    }
    Some(Ok(moved))
}

fn describe(miss: &Miss) -> String {
    match miss {
        Miss::Work(id) => format!("work row {} is gone", id.0),
        Miss::Record(step) => format!("there is a record of {step} already"),
        Miss::Late { work, .. } => format!("a late success was noted on work row {}", work.0),
        Miss::Saga(saga) => format!("saga {} has moved", saga.id.0),
        Miss::NoSaga(id) => format!("there is no saga {}", id.0),
    }
}

fn conflict(detail: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Conflict, "transact", detail)
}
