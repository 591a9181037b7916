//! The duty of keeping what is to be done.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{
    DefinitionId, Lease, MemberId, Reported, SagaId, SagaRow, StepRecord, StoreError, Timestamp, WorkId, WorkKind,
    WorkRef,
};
use crate::key::StepId;

/// A claim of work.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The owner, and how long the lease lasts.
    pub lease: Lease,
    /// The most rows to take.
    pub limit: usize,
    /// Only work of these definitions. Other work waits for a process that knows its definition.
    pub definitions: Arc<[DefinitionId]>,
    /// Whether to take rows whose owner seems to have vanished, besides rows without an owner.
    pub takes_over: bool,
}

/// A claim of a part of the work.
#[derive(Debug, Clone)]
pub struct ShareRequest {
    /// The owner, and how long the lease lasts.
    pub lease: Lease,
    /// The most rows to take.
    pub limit: usize,
    /// The shares to take from. No row belongs to two shares.
    pub shares: Vec<ClaimShare>,
    /// As in [`ClaimRequest`].
    pub takes_over: bool,
}

/// A part of the work of one definition, of which a claim takes a limited number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimShare {
    /// The definition.
    pub definition: DefinitionId,
    /// Only work of these steps. `None` is all work of the definition.
    pub steps: Option<Arc<[ClaimStep]>>,
    /// The most rows to take: 1 or more.
    pub limit: usize,
}

/// One kind of work of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimStep {
    /// What to do.
    pub kind: WorkKind,
    /// The step's name, [`StepId::step`]: every item of a list, and every round of a compensation. The name is empty
    /// for a deadline.
    pub step: &'static str,
}

impl ClaimShare {
    /// Whether the row belongs to it.
    pub fn takes(&self, definition: &DefinitionId, kind: WorkKind, step: &StepId) -> bool {
        let is_among = |steps: &Arc<[ClaimStep]>| {
            // A deadline is of no step.
            let name = if kind == WorkKind::Deadline { "" } else { step.step() };
            steps.iter().any(|of| of.kind == kind && of.step == name)
        };
        self.definition == *definition && self.steps.as_ref().is_none_or(is_among)
    }
}

/// A claimed work row, with all that is needed to run it.
#[derive(Debug, Clone)]
pub struct ClaimedWork {
    /// The row and its new epoch.
    pub work: WorkRef,
    /// What to do.
    pub kind: WorkKind,
    /// The saga it belongs to.
    pub saga: SagaId,
    /// The step.
    pub step: StepId,
    /// Attempts that are written down.
    pub attempts: u32,
    /// Whether an attempt ended without a definite answer.
    pub in_doubt: bool,
    /// Whether it was taken from an owner that vanished. It stays so until the row is finished.
    pub recovered: bool,
    /// Whether an owner that vanished may have begun it. An owner that had only queued the row does not change this.
    pub began: bool,
    /// How long its attempts have failed, if they have.
    pub retrying_for: Option<Duration>,
    /// The input that a mapping made. `None` where the step gets the saga's own input.
    pub payload: Option<Vec<u8>>,
    /// The output of a success that an older owner reported after it had lost the row.
    pub late: Option<Vec<u8>>,
    /// The last progress report.
    pub reported: Option<Reported>,
}

/// The answer of a claim.
#[derive(Debug, Clone, Default)]
pub struct Claimed {
    /// The rows.
    pub work: Vec<ClaimedWork>,
    /// Their sagas, each once, with the records that [`records_of_steps`](super::Records::records_of_steps) gives.
    /// Items read their own records, because a saga with a thousand items would otherwise be read a thousand times.
    pub sagas: Vec<(SagaRow, Vec<StepRecord>)>,
    /// The time until the next row that this claim may take is due, if there is one.
    pub next_due_in: Option<Duration>,
    /// The rows that cannot be read, or whose saga or records cannot. They keep no other row from being claimed.
    pub unreadable: Vec<UnreadableWork>,
}

impl Claimed {
    /// Makes the rows unreadable whose saga is not among [`sagas`](Self::sagas), for the problem that is given for it. One without a
    /// problem does not exist.
    pub fn leave_out_unread(&mut self, problems: &BTreeMap<SagaId, String>) {
        let Self { work, sagas, unreadable, .. } = self;
        work.retain(|row| {
            let is_read = sagas.iter().any(|(saga, _)| saga.id == row.saga);
            if !is_read {
                let problem = problems.get(&row.saga).map_or("it does not exist", String::as_str);
                let problem = format!("saga {}: {problem}", row.saga.0);
                unreadable.push(UnreadableWork { work: row.work.id, problem });
            }
            is_read
        });
    }
}

/// A work row that was claimed and cannot be read: a newer version wrote it, or the storage is damaged. It keeps the lease of
/// the claim, and is claimed again when the lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableWork {
    /// The row.
    pub work: WorkId,
    /// What cannot be read.
    pub problem: String,
}

/// Handing out ids.
///
/// # Contract
/// - `S-ID-1` No id is handed out twice, also after a crash, and ids are above zero.
#[async_trait]
pub trait Ids: Send + Sync {
    /// A block of `count` ids for this caller alone.
    async fn reserve_ids(&self, count: u32) -> Result<Range<i64>, StoreError>;
}

/// Keeping what is to be done.
///
/// # Contract
/// - `S-WORK-1` [`claim`](Work::claim) takes rows that are due, free and of a known definition, oldest due first, at most `limit`; it gives each the next epoch, the owner and the lease, in one commit.
/// - `S-WORK-2` Two claims never get the same row unless it became free in between.
/// - `S-WORK-3` A row whose owner vanished (its lease ended, or the member is dead) is marked as recovered by the claim that takes it. A row that was released, postponed or inserted free is not.
/// - `S-WORK-4` A row whose step already has a record is never claimed; it is deleted.
/// - `S-WORK-5` [`renew`](Work::renew) extends the leases of the rows that still have the given epoch, and answers which they are.
/// - `S-WORK-6` [`release_work`](Work::release_work) frees the rows that still have the given epoch and raises their epoch; it counts nothing and marks nothing. A caller whose commit is in doubt uses it to learn the outcome: it waits for that commit, and a row that it freed was not finished by it.
/// - `S-WORK-7` [`begin_attempt`](Work::begin_attempt) writes down, before the attempt runs, that it is the `attempt`th attempt of a row with the given epoch, and answers whether the row was still there. The same call again changes nothing.
/// - `S-WORK-8` [`note_late`](Work::note_late) keeps the success that an older owner reports on the row, whichever owner has it now; it answers false when the row is gone. From then on [`Condition::NotLate`](super::Condition::NotLate) does not hold for the row.
/// - `S-WORK-9` All times are those of the store's clock at the time of the statement, as [`now`](Work::now) returns it.
/// - `S-WORK-10` [`report`](Work::report) keeps a call's report on the row if the row still has the given epoch and no report with a higher number, and answers whether it did. With a lease it also renews the lease in the same commit, under the same condition. The report stays on the row whatever happens to its lease, its epoch and its due time, and comes with every claim of the row; it is deleted with the row.
/// - `S-WORK-11` Whether a row may have begun is stored separately. A row that was inserted with a lease counts as begun by that owner; a claimed row does not, until [`begin`](Work::begin) marks it under the epoch of the claim. A claim reports `began` if an owner that vanished may have begun the row, under this epoch or an earlier one. Releasing or postponing the row is no vanishing, and does not clear the mark of an owner that had begun the row and vanished.
/// - `S-WORK-12` [`begin`](Work::begin) marks the rows that still have the given epoch as begun and extends their leases in the same commit, and answers which they are.
/// - `S-WORK-13` A claim that does not take over takes only rows without a lease, and leaves the rows of owners that vanished as they are. The claim of a dead member never takes over: the rows that it finds may be those that its own process still works on.
/// - `S-WORK-14` [`claim_shares`](Work::claim_shares) does what [`claim`](Work::claim) does, for the work of the given shares only, and takes at most the limit of each share. Rows for which a share has no room stay as they are and do not keep rows of other shares from being taken. [`Claimed::next_due_in`] covers rows of the shares that are due later, and rows that found no room in the limit of the whole claim; it may leave out rows that found no room in their share.
/// - `S-WORK-15` [`release_unbegun`](Work::release_unbegun) releases the rows that the member holds by a claim and has not begun, as `S-WORK-6` says. A caller whose claim is in doubt uses it, because it does not know which rows it got. Rows that the member has begun, rows that were inserted with its lease, and rows of others stay as they are. Rows that a transaction holds at that moment may stay as well.
#[async_trait]
pub trait Work: Ids {
    /// Claims work.
    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError>;

    /// Claims a part of the work, for a caller that has no room for all of it. It is called while much other work waits,
    /// so a store should not read that other work.
    async fn claim_shares(&self, request: ShareRequest) -> Result<Claimed, StoreError>;

    /// Renews leases; answers in the order of the request whether each row is still held.
    async fn renew(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError>;

    /// Marks rows as begun and renews their leases; answers in the order of the request whether each row is still held.
    async fn begin(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError>;

    /// Releases rows; answers in the order of the request which rows this call freed.
    async fn release_work(&self, work: &[WorkRef]) -> Result<Vec<bool>, StoreError>;

    /// Releases the rows that a member has claimed and not begun; answers how many.
    async fn release_unbegun(&self, owner: MemberId) -> Result<u64, StoreError>;

    /// Writes down that an attempt begins.
    async fn begin_attempt(&self, work: WorkRef, attempt: u32) -> Result<bool, StoreError>;

    /// Keeps a call's progress report. Numbers grow with every try, also when the same report is tried again.
    async fn report(
        &self,
        work: WorkRef,
        number: u64,
        progress: &[u8],
        lease: Option<Lease>,
    ) -> Result<bool, StoreError>;

    /// Keeps the output of a call whose owner had lost the row.
    async fn note_late(&self, work: WorkId, output: &[u8]) -> Result<bool, StoreError>;

    /// How many rows wait, and how long the oldest due row has been due.
    async fn backlog(&self) -> Result<(u64, Option<Duration>), StoreError>;

    /// The store's clock.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Work that no living member can do: its definition, and how many rows wait.
    async fn unknown_work(&self, known: &[DefinitionId]) -> Result<Vec<(DefinitionId, u64)>, StoreError>;
}
