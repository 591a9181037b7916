//! What a process does with what it claimed.

use std::time::Duration;

use saga_core::machine::{Attempt, Effect, Ending, Event, Next, after_attempt};

use crate::mutant::Mutant;
use crate::protocol::Protocol;
use crate::world::{Answered, Stage, Task, World};

/// How a call to the outside world goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// It takes effect, and is answered.
    Done,
    /// It is refused.
    Rejected,
    /// It fails, and nothing happened.
    Failed,
    /// It takes effect, and its answer is lost.
    Unanswered,
    /// It fails, and takes effect later.
    Flying,
}

impl Protocol {
    /// A step's transaction commits with the handler's result; or a compensation's.
    pub(crate) fn commit(&self, world: &mut World, at: usize, task: usize, answered: Answered) -> bool {
        let service = &mut world.services[at];
        let mut task = service.tasks.remove(task);
        if answered == Answered::Rejected && self.has(Mutant::RecordsInRolledBack) {
            return true;
        }
        let is_held = service.work.get(&task.key).is_some_and(|work| work.epoch == task.epoch);
        if !is_held && !self.has(Mutant::TakesHeldRows) {
            return true;
        }
        if let (Some(seen), Some(saga)) = (task.seen.take(), &mut service.saga) {
            saga.state = seen;
        }
        if answered == Answered::Done && task.stage == Stage::Began {
            *service.effects.entry(task.key).or_default() += 1;
            if self.has(Mutant::CommitsTwice) {
                task.stage = Stage::Written;
                service.tasks.push(task);
                return true;
            }
        }
        let next = self.after(at, &task, self.ending(answered));
        self.settle(world, at, &task, next)
    }

    /// A process calls the world outside.
    pub(crate) fn call(world: &mut World, at: usize, task: usize, call: Call) -> bool {
        let task = &mut world.services[at].tasks[task];
        let outside = world.outside.entry(task.key.step).or_default();
        let answered = match call {
            Call::Done => Answered::Done,
            Call::Rejected => Answered::Rejected,
            Call::Failed | Call::Unanswered | Call::Flying => Answered::Erred,
        };
        if matches!(call, Call::Done | Call::Unanswered) {
            if task.key.is_undo() {
                outside.stands = false;
            } else {
                outside.takes_effect();
            }
        }
        outside.is_flying |= call == Call::Flying;
        task.stage = Stage::Answered(answered);
        match answered {
            Answered::Done => {}
            Answered::Rejected => world.left.rejections -= 1,
            Answered::Erred => world.left.errors -= 1,
        }
        true
    }

    /// What a call was answered is recorded, if the claim still stands.
    pub(crate) fn record(&self, world: &mut World, at: usize, task: usize, answered: Answered) -> bool {
        let is_stale = Self::is_stale(world, at, &world.services[at].tasks[task]);
        let service = &mut world.services[at];
        let mut task = service.tasks.remove(task);
        let work = service.work.get_mut(&task.key);
        if is_stale && !self.has(Mutant::IgnoresTheEpoch) {
            // The decision is void; what the call may have done is a fact, and is kept.
            match (answered, work) {
                _ if task.key.is_undo() => {}
                (Answered::Done, _) if self.has(Mutant::ForgetsLateSuccess) => {}
                (Answered::Erred, _) if self.has(Mutant::ForgetsLateUnknown) => {}
                (Answered::Done, Some(work)) => work.is_late = true,
                (Answered::Done, None) => {
                    task.stage = Stage::Late;
                    service.tasks.push(task);
                }
                (Answered::Erred, None) => {
                    task.stage = Stage::LateUnknown;
                    service.tasks.push(task);
                }
                // Who has the row knows that the call began.
                (Answered::Erred, Some(_)) | (Answered::Rejected, _) => {}
            }
            return true;
        }
        // A success that an older owner noted decides.
        let answered = if work.is_some_and(|work| work.is_late) { Answered::Done } else { answered };
        let next = self.after(at, &task, self.ending(answered));
        self.settle(world, at, &task, next)
    }

    /// A success, or that a call was not answered, is brought to a saga that was decided without it.
    pub(crate) fn bring(&self, world: &mut World, at: usize, task: usize) -> bool {
        let task = world.services[at].tasks.remove(task);
        let step = task.key.step;
        let is_unknown = task.stage == Stage::LateUnknown;
        self.advance(world, at, if is_unknown { Event::LateUnknown { step } } else { Event::LateSuccess { step } })
    }

    /// What comes after an attempt is written down.
    pub(crate) fn settle(&self, world: &mut World, at: usize, task: &Task, next: Next) -> bool {
        let is_stale = Self::is_stale(world, at, task);
        world.decided_stale |= is_stale;
        let service = &mut world.services[at];
        match next {
            Next::Again { in_doubt, .. } => {
                if let Some(work) = service.work.get_mut(&task.key) {
                    (work.is_leased, work.is_recovered) = (false, false);
                    (work.attempts, work.in_doubt) = (task.attempt, in_doubt);
                }
                true
            }
            Next::Settled(event) => {
                service.work.remove(&task.key);
                self.advance(world, at, event)
            }
        }
    }

    pub(crate) fn after(&self, at: usize, task: &Task, ending: Ending) -> Next {
        let attempt = Attempt {
            step: task.key.step,
            undo: task.key.is_undo(),
            effect: self.effect(at, task.key),
            side: self.shape(at).side(task.key.step),
            policy: self.policy,
            attempts: task.attempt,
            in_doubt: task.in_doubt,
            informed: task.informed,
            resolving: None,
            retrying_for: Duration::ZERO,
            random: 0,
        };
        after_attempt(&attempt, ending)
    }

    fn ending(&self, answered: Answered) -> Ending {
        match answered {
            Answered::Done => Ending::Done,
            Answered::Rejected => Ending::Rejected(self.reason.clone()),
            Answered::Erred => Ending::Erred { message: String::new(), not_sent: false, delay_min: Duration::ZERO },
        }
    }

    /// The ways in which a call can go now.
    pub(crate) fn calls(&self, world: &World, at: usize, task: &Task) -> Vec<Call> {
        if self.effect(at, task.key) != Effect::External || task.stage != Stage::Began {
            return Vec::new();
        }
        let is_used = world.outside.get(&task.key.step).is_some_and(|outside| outside.is_used);
        let is_undo = task.key.is_undo();
        let mut calls = vec![Call::Done];
        if !is_undo && !is_used && world.left.rejections > 0 {
            calls.push(Call::Rejected);
        }
        if world.left.errors > 0 {
            calls.push(Call::Failed);
            if !is_used && !is_undo {
                calls.extend([Call::Unanswered, Call::Flying]);
            }
        }
        calls
    }
}

impl crate::world::Outside {
    /// A call arrives. The same key takes effect once.
    pub(crate) fn takes_effect(&mut self) {
        if !self.is_used {
            (self.is_used, self.stands) = (true, true);
        }
    }
}
