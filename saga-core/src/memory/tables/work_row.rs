//! The rows of `work`.

use crate::key::{Key, StepId, Tenant};
use crate::memory::clock::Moment;
use crate::store::{
    ClaimedWork, DefinitionId, Lease, MemberId, Message, NewWork, Reported, SagaId, Timestamp, WorkId, WorkKind,
    WorkRef, WorkStatus,
};

/// A lease on a row or a lane.
#[derive(Debug, Clone, Copy)]
pub(in crate::memory) struct HeldLease {
    pub(in crate::memory) owner: MemberId,
    pub(in crate::memory) until: Timestamp,
}

impl HeldLease {
    pub(in crate::memory) fn new(lease: Lease, now: Timestamp) -> Self {
        Self { owner: lease.owner, until: now.plus(lease.ttl) }
    }
}

/// A row of `work`.
#[derive(Debug)]
pub(in crate::memory) struct WorkRow {
    pub(in crate::memory) kind: WorkKind,
    pub(in crate::memory) saga: SagaId,
    pub(in crate::memory) tenant: Tenant,
    pub(in crate::memory) key: Key,
    pub(in crate::memory) step: StepId,
    pub(in crate::memory) definition: DefinitionId,
    pub(in crate::memory) payload: Option<Vec<u8>>,
    pub(in crate::memory) due_at: Timestamp,
    pub(in crate::memory) epoch: u64,
    pub(in crate::memory) lease: Option<HeldLease>,
    pub(in crate::memory) attempts: u32,
    pub(in crate::memory) in_doubt: bool,
    /// Whether it was taken from an owner that vanished.
    pub(in crate::memory) recovered: bool,
    /// The epoch under which no owner has begun the row, also none that vanished before.
    pub(in crate::memory) waiting: Option<u64>,
    pub(in crate::memory) retrying_since: Option<Timestamp>,
    pub(in crate::memory) error: Option<String>,
    pub(in crate::memory) late: Option<Vec<u8>>,
    pub(in crate::memory) reported: Option<Reported>,
    /// Set in a row that keeps a received message; such a row has no saga, no step and no definition.
    pub(in crate::memory) message: Option<Message>,
}

impl WorkRow {
    /// Whether certainly no owner has begun it.
    pub(in crate::memory) fn waits(&self) -> bool {
        self.waiting == Some(self.epoch)
    }

    /// Frees it under the next epoch.
    pub(in crate::memory) fn release(&mut self) {
        self.lease = None;
        self.waiting = self.waits().then_some(self.epoch + 1);
        self.epoch += 1;
    }

    /// The row of a command.
    pub(in crate::memory) fn of_command(new: NewWork, now: Timestamp) -> Self {
        Self {
            kind: new.kind,
            saga: new.saga,
            tenant: new.tenant,
            key: new.key,
            step: new.step,
            definition: new.definition,
            payload: new.payload,
            due_at: now.plus(new.due_in),
            epoch: 1,
            lease: new.lease.map(|lease| HeldLease::new(lease, now)),
            attempts: new.tried.as_ref().map_or(0, |tried| tried.attempts),
            in_doubt: false,
            recovered: false,
            waiting: None,
            retrying_since: new.tried.is_some().then_some(now),
            error: new.tried.map(|tried| tried.error),
            late: None,
            reported: None,
            message: None,
        }
    }

    /// The row that keeps a received message.
    pub(in crate::memory) fn of_message(message: Message, lease: Option<Lease>, now: Timestamp) -> Self {
        Self {
            kind: WorkKind::Do,
            saga: SagaId(0),
            tenant: message.tenant.clone(),
            key: Key::none(),
            step: StepId::from_stored(""),
            definition: DefinitionId { name: "".into(), version: 0 },
            payload: None,
            due_at: now,
            epoch: 1,
            lease: lease.map(|lease| HeldLease::new(lease, now)),
            attempts: 0,
            in_doubt: false,
            recovered: false,
            waiting: None,
            retrying_since: None,
            error: None,
            late: None,
            reported: None,
            message: Some(message),
        }
    }
}

/// `retrying_for` depends on the clock of the claim, and `began` on the claim itself.
impl From<(WorkId, &WorkRow)> for ClaimedWork {
    fn from((id, row): (WorkId, &WorkRow)) -> Self {
        Self {
            work: WorkRef { id, epoch: row.epoch },
            kind: row.kind,
            saga: row.saga,
            step: row.step.clone(),
            attempts: row.attempts,
            in_doubt: row.in_doubt,
            recovered: row.recovered,
            began: false,
            retrying_for: None,
            payload: row.payload.clone(),
            late: row.late.clone(),
            reported: row.reported.clone(),
        }
    }
}

impl From<(WorkId, &WorkRow)> for WorkStatus {
    fn from((id, row): (WorkId, &WorkRow)) -> Self {
        Self {
            work: WorkRef { id, epoch: row.epoch },
            kind: row.kind,
            step: row.step.clone(),
            attempts: row.attempts,
            in_doubt: row.in_doubt,
            due_at: row.due_at,
            owner: row.lease.map(|lease| lease.owner),
            retrying_since: row.retrying_since,
            error: row.error.clone(),
            payload: row.payload.clone(),
            reported: row.reported.clone(),
        }
    }
}
