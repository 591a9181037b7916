//! Work is claimed, leases end, processes crash.

use saga_core::machine::{ClaimedRow, Effect, Ending, Event, Next};

use crate::mutant::Mutant;
use crate::protocol::Protocol;
use crate::world::{Answered, Stage, StepKey, Task, Work, World};

impl Protocol {
    /// Whether a row of work can be claimed now.
    pub(crate) fn is_claimable(&self, world: &World, at: usize, key: StepKey, work: &Work) -> bool {
        let effect = self.effect(at, key);
        if matches!(effect, Effect::Remote { .. }) || world.services[at].tasks.len() >= self.bounds.processes {
            return false;
        }
        // An undo that does not know whether there is anything to undo waits until every call must have landed.
        let waits = effect == Effect::External
            && key.is_undo()
            && !work.known
            && world.outside.get(&key.step).is_some_and(|outside| outside.is_flying);
        let is_free = !work.is_leased || (self.has(Mutant::TakesHeldRows) && effect == Effect::Transactional);
        is_free && (!waits || self.has(Mutant::SkipsTheSettleTime))
    }

    /// A process takes a row, and begins with it. A transactional step is inside its transaction then.
    pub(crate) fn claim(&self, world: &mut World, at: usize, key: StepKey) -> bool {
        let (effect, undo) = (self.effect(at, key), self.shape(at).steps[key.step].undo);
        let service = &mut world.services[at];
        let (Some(work), Some(saga)) = (service.work.get_mut(&key), &service.saga) else { return false };
        let is_recovered = work.is_recovered && !self.has(Mutant::ForgetsDoubt);
        let mut row = ClaimedRow {
            command: key.command(work.known),
            effect,
            undo,
            in_doubt: work.in_doubt && !self.has(Mutant::ForgetsDoubt),
            recovered: is_recovered,
            is_late: work.is_late,
            has_resolution: false,
        };
        row.in_doubt = row.may_have_happened(&saga.state.0);
        if let Some(event) = row.unwanted(&saga.state.0) {
            service.work.remove(&key);
            return self.advance(world, at, event);
        }
        let held = self.has(Mutant::TakesHeldRows) && work.is_leased;
        work.is_leased = true;
        work.is_begun = effect != Effect::External;
        work.epoch += u8::from(!held);
        let is_known = work.is_late && effect.is_outside();
        let mut task = Task {
            key,
            epoch: work.epoch,
            attempt: work.attempts,
            in_doubt: row.in_doubt,
            informed: key.is_undo() && !saga.state.0.steps[key.step].in_doubt,
            stage: match effect {
                _ if is_known => Stage::Answered(Answered::Done),
                Effect::External => Stage::Waiting,
                _ => Stage::Began,
            },
            began_stale: false,
            seen: self.has(Mutant::OverwritesTheSaga).then(|| saga.state.clone()),
        };
        if work.is_recovered {
            if work.attempts >= self.bounds.attempts && !work.is_late {
                let next = self.after(at, &task, Ending::Vanished);
                if matches!(next, Next::Settled(_)) {
                    return self.settle(world, at, &task, next);
                }
            }
            work.attempts += 1;
            task.attempt = work.attempts;
        } else {
            task.attempt += 1;
        }
        if self.has(Mutant::SendsBeforeCommit) && effect == Effect::Transactional {
            self.send_before_commit(world, at, key);
        }
        world.services[at].tasks.push(task);
        world.services[at].tasks.sort_by_key(|task| (task.key, task.epoch, task.attempt));
        true
    }

    /// A call begins, if the claim still stands: both are one commit.
    pub(crate) fn begin(&self, world: &mut World, at: usize, task: usize) -> bool {
        let is_stale = Self::is_stale(world, at, &world.services[at].tasks[task]);
        let service = &mut world.services[at];
        if is_stale && !self.has(Mutant::BeginsStale) {
            service.tasks.remove(task);
            return true;
        }
        let task = &mut service.tasks[task];
        (task.stage, task.began_stale) = (Stage::Began, is_stale);
        if let Some(work) = service.work.get_mut(&task.key).filter(|_| !is_stale) {
            // Its lease is renewed in the same commit.
            (work.is_begun, work.is_leased) = (true, true);
        }
        true
    }

    /// A process ends. What it had leased is free, and suspect if it may have begun.
    pub(crate) fn crash(&self, world: &mut World, at: usize, task: usize) -> bool {
        world.left.crashes -= 1;
        let service = &mut world.services[at];
        let task = service.tasks.remove(task);
        service.in_hand.clear();
        if let Some(work) = service.work.get_mut(&task.key)
            && work.epoch == task.epoch
            && !self.has(Mutant::KeepsDeadLeases)
        {
            self.free(work);
        }
        true
    }

    fn free(&self, work: &mut Work) {
        work.is_leased = false;
        work.is_recovered |= work.is_begun && !self.has(Mutant::ForgetsBeginnings);
    }

    /// Whether a process may crash here. One whose call took effect after it was paused past its lease lives to tell: the
    /// world outside of this model does not bar what was undone. That it lives is too much to ask of one that began then.
    pub(crate) fn may_crash(world: &World, at: usize, task: &Task) -> bool {
        let may_have_effect = match task.stage {
            Stage::Late | Stage::LateUnknown => true,
            Stage::Answered(answered) => answered != Answered::Rejected,
            Stage::Waiting | Stage::Began | Stage::Written => false,
        };
        !(may_have_effect && !task.began_stale && Self::is_stale(world, at, task))
    }

    /// Whether the task has lost its claim.
    pub(crate) fn is_stale(world: &World, at: usize, task: &Task) -> bool {
        world.services[at].work.get(&task.key).is_none_or(|work| work.epoch != task.epoch)
    }

    /// The lease of a call ends, while its owner is paused.
    pub(crate) fn pause(&self, world: &mut World, at: usize, key: StepKey) -> bool {
        world.left.pauses -= 1;
        let Some(work) = world.services[at].work.get_mut(&key) else { return false };
        self.free(work);
        true
    }

    /// What would follow from a success is with the broker before the success is committed.
    fn send_before_commit(&self, world: &mut World, at: usize, key: StepKey) {
        let mut ahead = world.clone();
        let event = if key.is_undo() {
            Event::Undone { step: key.step, informed: false }
        } else {
            Event::Done { step: key.step }
        };
        if !self.advance(&mut ahead, at, event) {
            return;
        }
        let before = &world.services[at].outbox;
        for message in ahead.services[at].outbox.iter().filter(|message| !before.contains(message)) {
            *world.network.entry(*message).or_default() += 1;
        }
    }
}
