//! The duty of keeping what is to be done.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{
    DefinitionId, Lease, Reported, SagaId, SagaRow, StepRecord, StoreError, Timestamp, WorkId, WorkKind, WorkRef,
};
use crate::key::StepId;

/// What to claim.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// For whom, and for how long.
    pub lease: Lease,
    /// At most so many rows.
    pub limit: usize,
    /// Only work of these definitions: the rest waits for somebody who knows it.
    pub definitions: Arc<[DefinitionId]>,
    /// Whether rows are taken whose owner seems to have vanished, besides those that nobody has.
    pub takes_over: bool,
}

/// What to claim where a caller has room for some of the work only.
#[derive(Debug, Clone)]
pub struct ShareRequest {
    /// For whom, and for how long.
    pub lease: Lease,
    /// At most so many rows.
    pub limit: usize,
    /// What to take. No row belongs to two of them.
    pub shares: Vec<ClaimShare>,
    /// As in [`ClaimRequest`].
    pub takes_over: bool,
}

/// A part of the work of one definition, of which a claim takes a limited number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimShare {
    /// Whose work.
    pub definition: DefinitionId,
    /// Only work of these steps; all of it where nothing is said.
    pub steps: Option<Arc<[ClaimStep]>>,
    /// At most so many rows: 1 or more.
    pub limit: usize,
}

/// One kind of work of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimStep {
    /// What the rows ask for.
    pub kind: WorkKind,
    /// The step's name, [`StepId::step`]: of a list every item, of a compensation every round. That of a deadline is empty.
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

/// A work row that was claimed, with all that is needed to run it.
#[derive(Debug, Clone)]
pub struct ClaimedWork {
    /// The row and its new epoch.
    pub work: WorkRef,
    /// What it asks for.
    pub kind: WorkKind,
    /// The saga it belongs to.
    pub saga: SagaId,
    /// Which step.
    pub step: StepId,
    /// Attempts that are written down.
    pub attempts: u32,
    /// Whether an attempt ended without a definite answer.
    pub in_doubt: bool,
    /// Whether it was taken from an owner that vanished. It stays so until the row is finished.
    pub recovered: bool,
    /// Whether an owner that vanished may have begun it. An owner that had only queued the row leaves it as it was.
    pub began: bool,
    /// For how long its attempts have failed, if they have.
    pub retrying_for: Option<Duration>,
    /// The input that a mapping gave, where the saga's own input is not the step's.
    pub payload: Option<Vec<u8>>,
    /// A success that an older owner reported after it had lost the row.
    pub late: Option<Vec<u8>>,
    /// What a call reported last.
    pub reported: Option<Reported>,
}

/// What a claim answers.
#[derive(Debug, Clone, Default)]
pub struct Claimed {
    /// The rows.
    pub work: Vec<ClaimedWork>,
    /// Their sagas, each once, with the records that [`records_of_steps`](super::Records::records_of_steps) gives: items find
    /// theirs themselves, or a saga with a thousand of them would be read a thousand times.
    pub sagas: Vec<(SagaRow, Vec<StepRecord>)>,
    /// How long until the next row that this claim may take falls due, if one waits.
    pub next_due_in: Option<Duration>,
}

/// Handing out ids.
///
/// # Contract
/// - `S-ID-1` No id is handed out twice, whatever crashes, and ids are above zero.
#[async_trait]
pub trait Ids: Send + Sync {
    /// A block of `count` ids that nobody else gets.
    async fn reserve_ids(&self, count: u32) -> Result<Range<i64>, StoreError>;
}

/// Keeping what is to be done.
///
/// # Contract
/// - `S-WORK-1` [`claim`](Work::claim) takes rows that are due, free and of a known definition, oldest due first, at most `limit`; it gives each the next epoch, the owner and the lease, in one commit.
/// - `S-WORK-2` Two claims never get the same row unless it became free in between.
/// - `S-WORK-3` A row whose owner vanished (a lease that ended, or a dead member) is marked suspect by the claim that takes it; one that was given back, postponed or inserted free is not.
/// - `S-WORK-4` A row whose step has a record already is never claimed; it is deleted.
/// - `S-WORK-5` [`renew`](Work::renew) lengthens the leases of the rows that still have the given epoch, and says which they are.
/// - `S-WORK-6` [`give_back`](Work::give_back) frees the rows that still have the given epoch and raises their epoch; it counts nothing and marks nothing. A caller whose commit is in doubt uses it to learn the truth: it waits for the one in doubt, and a row that it freed was not finished by it.
/// - `S-WORK-7` [`begin_attempt`](Work::begin_attempt) writes down, before it runs, that this is the `attempt`th attempt of a row with the given epoch, and says whether the row was still there. The same call again changes nothing.
/// - `S-WORK-8` [`note_late`](Work::note_late) keeps a success that an older owner reports, on the row, whoever owns it now; it answers false when the row is gone. From then on [`Condition::NotLate`](super::Condition::NotLate) does not hold for it.
/// - `S-WORK-9` Times are those of the store's clock at the moment of the statement, which [`now`](Work::now) tells.
/// - `S-WORK-10` [`report`](Work::report) keeps a call's report on the row if it still has the given epoch and no report with a higher number, and says whether it had. With a lease it renews that in the same commit, under the same condition. The report stays on the row whatever becomes of its lease, its epoch and its due time, and comes with every claim of it; it is gone with the row.
/// - `S-WORK-11` Whether a row may have begun is a fact of its own. A row that was inserted with a lease counts as begun by that owner; a row that was claimed does not until [`begin`](Work::begin) says so under the epoch of the claim. A claim reports `began` if an owner that vanished may have begun the row, under this epoch or an earlier one; giving the row back or postponing it is no vanishing, and makes no vanished owner forgotten that had begun.
/// - `S-WORK-12` [`begin`](Work::begin) marks the rows that still have the given epoch as begun and lengthens their leases in the same commit, and says which they are.
/// - `S-WORK-13` A claim that does not take over takes only rows that nobody has leased, and leaves a vanished owner's rows as they are. The claim of a dead member takes nothing over, whatever it asks for: what it finds may be what its own process has in hand.
/// - `S-WORK-14` [`claim_shares`](Work::claim_shares) does what [`claim`](Work::claim) does, with the work of the given shares only, and of each share at most its limit. Rows for which a share has no room stay as they are and keep nobody from the rows of other shares. [`Claimed::next_due_in`] is about rows of the shares that fall due later, and about those that found no room in the limit of the whole claim; it may leave out those that found none in their share.
#[async_trait]
pub trait Work: Ids {
    /// Claims work.
    async fn claim(&self, request: ClaimRequest) -> Result<Claimed, StoreError>;

    /// Claims some of the work, for a caller that has no room for all of it. It is asked while much other work waits, so
    /// that it should not have to look at that.
    async fn claim_shares(&self, request: ShareRequest) -> Result<Claimed, StoreError>;

    /// Renews leases; answers in the order of the request whether each is still held.
    async fn renew(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError>;

    /// Marks rows as begun and renews their leases; answers in the order of the request whether each is still held.
    async fn begin(&self, work: &[WorkRef], lease: Lease) -> Result<Vec<bool>, StoreError>;

    /// Gives rows back; answers in the order of the request which were freed by this call.
    async fn release_work(&self, work: &[WorkRef]) -> Result<Vec<bool>, StoreError>;

    /// Writes down that an attempt begins.
    async fn begin_attempt(&self, work: WorkRef, attempt: u32) -> Result<bool, StoreError>;

    /// Keeps what a call reports of how far it is. Numbers grow with every try, also with one of the same report.
    async fn report(
        &self,
        work: WorkRef,
        number: u64,
        progress: &[u8],
        lease: Option<Lease>,
    ) -> Result<bool, StoreError>;

    /// Keeps the output of a call whose owner had lost the row.
    async fn note_late(&self, work: WorkId, output: &[u8]) -> Result<bool, StoreError>;

    /// How many rows wait, and for how long the oldest of those that are due has been due.
    async fn backlog(&self) -> Result<(u64, Option<Duration>), StoreError>;

    /// The store's clock.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Work that no living member can do: its definition, and how many rows wait.
    async fn unknown_work(&self, known: &[DefinitionId]) -> Result<Vec<(DefinitionId, u64)>, StoreError>;
}
