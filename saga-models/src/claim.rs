//! Work is claimed, leases end, processes crash.

use saga_core::machine::{ClaimedRow, Effect, Ending, Event, Next};

use crate::plant::Plant;
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
        let is_free = !work.is_leased || (self.has(Plant::TakesHeldRows) && effect == Effect::Transactional);
        is_free && (!waits || self.has(Plant::SkipsTheSettleTime))
    }

    /// A process takes a row, and begins with it. A transactional step is inside its transaction then.
    pub(crate) fn claim(&self, world: &mut World, at: usize, key: StepKey) -> bool {
        let effect = self.effect(at, key);
        let service = &mut world.services[at];
        let (Some(work), Some(saga)) = (service.work.get_mut(&key), &service.saga) else { return false };
        let is_suspect = work.is_suspect && !self.has(Plant::ForgetsMaybe);
        let mut row = ClaimedRow {
            command: key.command(work.known),
            effect,
            maybe: work.maybe && !self.has(Plant::ForgetsMaybe),
            suspect: is_suspect,
            is_late: work.is_late,
            can_be_asked: false,
        };
        row.maybe = row.may_have_happened(&saga.state.0);
        if let Some(event) = row.unwanted(&saga.state.0) {
            service.work.remove(&key);
            return self.advance(world, at, event);
        }
        let held = self.has(Plant::TakesHeldRows) && work.is_leased;
        work.is_leased = true;
        work.epoch += u8::from(!held);
        let is_known = work.is_late && effect.is_outside();
        let mut task = Task {
            key,
            epoch: work.epoch,
            attempt: work.attempts,
            maybe: row.maybe,
            informed: key.is_undo() && !saga.state.0.steps[key.step].maybe,
            stage: if is_known { Stage::Answered(Answered::Done) } else { Stage::Began },
            seen: self.has(Plant::OverwritesTheSaga).then(|| saga.state.clone()),
        };
        if work.is_suspect {
            if work.attempts >= self.policy.attempts && !work.is_late {
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
        if self.has(Plant::SendsBeforeCommit) && effect == Effect::Transactional {
            self.send_before_commit(world, at, key);
        }
        world.services[at].tasks.push(task);
        world.services[at].tasks.sort_by_key(|task| (task.key, task.epoch, task.attempt));
        true
    }

    /// A process ends. What it had leased is free, and suspect.
    pub(crate) fn crash(&self, world: &mut World, at: usize, task: usize) -> bool {
        world.left.crashes -= 1;
        let service = &mut world.services[at];
        let task = service.tasks.remove(task);
        service.in_hand.clear();
        if let Some(work) = service.work.get_mut(&task.key)
            && work.epoch == task.epoch
            && !self.has(Plant::KeepsDeadLeases)
        {
            work.is_leased = false;
            work.is_suspect = true;
        }
        true
    }

    /// Whether a process may crash here. One that was paused past its lease and then made its call lives to tell: the
    /// world outside of this model does not bar what was undone.
    pub(crate) fn may_crash(world: &World, at: usize, task: &Task) -> bool {
        let has_success = matches!(task.stage, Stage::Late | Stage::Answered(Answered::Done));
        !(has_success && Self::is_stale(world, at, task))
    }

    /// Whether the task has lost its claim.
    pub(crate) fn is_stale(world: &World, at: usize, task: &Task) -> bool {
        world.services[at].work.get(&task.key).is_none_or(|work| work.epoch != task.epoch)
    }

    /// The lease of a call ends, while its owner is paused.
    pub(crate) fn pause(world: &mut World, at: usize, key: StepKey) -> bool {
        world.left.pauses -= 1;
        let Some(work) = world.services[at].work.get_mut(&key) else { return false };
        (work.is_leased, work.is_suspect) = (false, true);
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
