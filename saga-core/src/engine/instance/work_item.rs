//! A command that this process has leased.

use std::sync::Arc;
use std::time::Duration;

use super::held_lease::HeldLease;
use super::inline_request::InlineRequest;
use super::saga_instance::SagaInstance;
use crate::engine::bulkhead::QueueSlot;
use crate::key::StepId;
use crate::machine::{self, Effect};
use crate::saga::{LockedOf, StepDefinition, StepResolve, StepRun};
use crate::step::{LockedEntity, StepOptions};
use crate::store::{Claim, ClaimedWork, MemberId, Reported, Store, WantedLock, WorkId, WorkKind, WorkRef};

/// A command that this process has leased.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct WorkItem<S: Store> {
    pub(crate) saga: SagaInstance<S>,
    pub(crate) work: WorkRef,
    pub(crate) command: machine::Command,
    /// Attempts that are written down.
    pub(crate) attempts: u32,
    pub(crate) in_doubt: bool,
    pub(crate) recovered: bool,
    /// Whether the saga's next steps may run in the same transaction.
    pub(crate) chains: bool,
    pub(crate) retrying_for: Duration,
    pub(crate) late_success: Option<Vec<u8>>,
    /// As which member of its store this process has it.
    pub(crate) owner: MemberId,
    /// Whether it was claimed, and the store does not know yet that it begins.
    pub(crate) is_claimed_only: bool,
    /// When the lease ends, by the clock of this process, counted from before the statement that gave it was sent.
    pub(crate) lease_until: Duration,
    /// The slot that the command takes in this process. Its successor inherits it.
    pub(crate) slot: Option<QueueSlot>,
    /// What the transaction that runs it commits as well.
    pub(crate) inline: Option<InlineRequest>,
    /// Of an exclusive step that is about to be called: the claim that is kept meanwhile.
    pub(crate) held_lease: Option<HeldLease>,
    /// What an earlier call of it reported last.
    pub(crate) reported: Option<Reported>,
    /// What its step has locked for this attempt; empty before that, and for a step without a lock.
    pub(crate) locked: Vec<LockedEntity>,
    /// The locks that its transaction takes, before that begins.
    pub(crate) wanted_locks: Vec<Arc<WantedLock>>,
    /// Whether its transaction found that others have what it locks, or wait for it. Then it asks for its lock, and waits as they do.
    pub(crate) asks_for_lock: bool,
}

impl<S: Store> WorkItem<S> {
    /// The first attempt of a command whose row this process has leased from the moment that it is written.
    pub(crate) fn new(
        saga: SagaInstance<S>,
        work: WorkId,
        command: machine::Command,
        owner: MemberId,
        lease_until: Duration,
        slot: Option<QueueSlot>,
    ) -> Self {
        Self {
            saga,
            work: WorkRef::inserted(work),
            command,
            attempts: 0,
            in_doubt: false,
            recovered: false,
            chains: true,
            retrying_for: Duration::ZERO,
            late_success: None,
            owner,
            is_claimed_only: false,
            lease_until,
            slot,
            inline: None,
            held_lease: None,
            reported: None,
            locked: Vec::new(),
            wanted_locks: Vec::new(),
            asks_for_lock: false,
        }
    }

    /// The command that a claimed row asks for.
    pub(crate) fn of_claim(
        claimed: ClaimedWork,
        mut saga: SagaInstance<S>,
        owner: MemberId,
        lease_until: Duration,
    ) -> Result<Self, String> {
        let name = claimed.step.step();
        let base =
            saga.definition.shape.position(name).ok_or_else(|| format!("its definition has no step `{name}`"))?;
        let step = saga.state.index_of(base, claimed.step.item());
        let step = step.ok_or_else(|| format!("`{}` is no item of its list", claimed.step))?;
        let order = match claimed.kind {
            WorkKind::Do => machine::Command::Do { step },
            WorkKind::Undo => machine::Command::Undo {
                step,
                round: claimed.step.undo_round().unwrap_or(1),
                known: !saga.state.steps[step].in_doubt,
            },
            WorkKind::Deadline => return Err("its row is of no step".to_owned()),
        };
        // A signal that arrived stands in the place of the time that it had.
        if claimed.kind == WorkKind::Do && saga.state.steps[step].signal.is_none() {
            saga.remember_given(step, claimed.payload);
        }
        saga.pick_item(step)?;
        saga.find_input(step)?;
        let effect = saga.definition.effect_of(&saga.state, order);
        let is_call = effect == Effect::External;
        // A call that only waited in a queue when its owner died has had no effect. A handler in a transaction may
        // have killed its process unnoticed, since its beginning is not recorded.
        let suspect = claimed.recovered && (claimed.began || !is_call);
        let row = machine::ClaimedRow {
            in_doubt: claimed.in_doubt,
            recovered: suspect,
            is_late: claimed.late.is_some(),
            has_resolution: saga.step(step).resolve.is_some(),
            ..machine::ClaimedRow::first(order, effect, saga.definition.shape.undo(&saga.state, step))
        };
        Ok(Self {
            work: claimed.work,
            command: order,
            attempts: claimed.attempts,
            in_doubt: row.may_have_happened(&saga.state),
            recovered: suspect,
            chains: true,
            retrying_for: claimed.retrying_for.unwrap_or_default(),
            owner,
            is_claimed_only: is_call && !claimed.began && claimed.late.is_none(),
            late_success: claimed.late,
            lease_until,
            slot: None,
            inline: None,
            held_lease: None,
            reported: claimed.reported,
            locked: Vec::new(),
            wanted_locks: Vec::new(),
            asks_for_lock: false,
            saga,
        })
    }

    /// Which attempt is the next one, or the one under way. That of a recovered command was written before it began.
    pub(crate) fn attempt_number(&self) -> u32 {
        if self.recovered { self.attempts.max(1) } else { self.attempts + 1 }
    }

    pub(crate) fn step_index(&self) -> usize {
        self.command.step()
    }

    pub(crate) fn step(&self) -> &StepDefinition<S> {
        self.saga.step(self.step_index())
    }

    /// Whether its handler is called for several commands at once.
    pub(crate) fn is_batch(&self) -> bool {
        !self.is_undo() && matches!(self.step().run, StepRun::Batch(_))
    }

    pub(crate) fn is_undo(&self) -> bool {
        self.command.is_undo()
    }

    pub(crate) fn step_id(&self) -> StepId {
        self.saga.definition.step_id(&self.saga.state, self.command)
    }

    /// The options of what is called: the step's, or its compensation's.
    pub(crate) fn options(&self) -> &StepOptions {
        let step = self.step();
        match &step.undo {
            Some((_, options)) if self.is_undo() => options,
            _ => &step.options,
        }
    }

    /// Where the effect of what is called lies.
    pub(crate) fn effect(&self) -> Effect {
        self.saga.definition.effect_of(&self.saga.state, self.command)
    }

    /// A number that grows with every owner of this step, also from one command of it to the next.
    pub(crate) fn fence(&self) -> u64 {
        self.saga.state.steps[self.step_index()].fence + self.work.epoch
    }

    pub(crate) fn claim(&self) -> Claim {
        let kind = if self.is_undo() { WorkKind::Undo } else { WorkKind::Do };
        Claim::new(self.work, self.saga.id, &self.saga.tenant, &self.saga.key, self.step_id(), kind)
    }

    /// How the next attempt asks what became of the step, if that is what it begins with.
    pub(crate) fn asks(&self) -> Option<&StepResolve> {
        self.resolve().filter(|_| self.in_doubt)
    }

    /// How the other side can be asked what became of the step.
    pub(crate) fn resolve(&self) -> Option<&StepResolve> {
        self.step().resolve.as_ref().filter(|_| !self.is_undo())
    }

    /// How long an attempt may take at most.
    pub(crate) fn time_limit(&self) -> Duration {
        let Some(resolve) = self.asks() else { return self.options().timeout };
        let once = self.options().timeout.saturating_add(resolve.options.timeout);
        if !self.recovered {
            return once;
        }
        once.saturating_add(self.step().settle_time()).saturating_add(resolve.options.timeout)
    }
}

/// What the step of the command locks, if that is called under a lock. A step that runs for each item of a list is not; its items
/// are.
pub(crate) fn lock_of<S: Store>(command: &WorkItem<S>) -> Option<LockedOf> {
    command.step().lock.filter(|_| command.effect() != Effect::Own)
}

pub(crate) fn refs<S: Store>(commands: &[WorkItem<S>]) -> Vec<WorkRef> {
    commands.iter().map(|command| command.work).collect()
}
