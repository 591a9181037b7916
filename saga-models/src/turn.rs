//! A saga moves: what the machine decides is written in one commit.

use saga_core::machine::{self, Command, Effect, Event, Sent, answer_of, must_undo};
use saga_core::store::{Answer, RecordedOutcome};

use crate::message::{Body, Message, STRANGER, Said};
use crate::mutant::Mutant;
use crate::protocol::Protocol;
use crate::world::{StepKey, Work, World};

impl Protocol {
    /// Moves the saga of a service. When it answers `false`, the commit must not happen.
    pub(crate) fn advance(&self, world: &mut World, at: usize, event: Event) -> bool {
        let shape = self.shape(at);
        let event = self.spoil(event);
        let service = &mut world.services[at];
        let Some(saga) = &mut service.saga else { return false };
        let state = &mut saga.state.0;
        let told = answer_of(state);
        let Ok(mut decision) = machine::apply(shape, state, event) else { return false };
        if must_undo(state)
            && let Ok(back) = machine::apply(shape, state, Event::UndoRequested)
        {
            decision.commands.extend(back.commands);
        }
        if self.has(Mutant::UndoesInOrder) {
            for (nth, step) in (1..).zip(state.steps.iter_mut().rev()).filter(|(_, step)| step.position > 0) {
                step.position = 1_000 + nth;
            }
        }
        let mut is_event = false;
        if let Some(record) = decision.record {
            let key = StepKey { step: record.step, round: record.undo_round.unwrap_or(0) };
            let before = service.records.insert(key, record.outcome);
            if before.is_some() && !self.has(Mutant::TakesHeldRows) && !self.has(Mutant::BeginsAgain) {
                return false;
            }
            let is_here = shape.steps[key.step].effect == Effect::Transactional;
            let is_done = record.outcome == RecordedOutcome::Done && !key.is_undo();
            is_event = self.bounds.has_events && at == 0 && is_here && is_done;
        }
        if let Some(revision) = decision.revision {
            service.records.insert(StepKey { step: revision.step, round: 0 }, revision.outcome);
        }
        if is_event {
            state.messages += 1;
            let body = Body::Event { position: state.messages };
            self.send(world, at, Message { from: at, to: STRANGER, body });
        }
        for command in decision.commands {
            self.give_out(world, at, command);
        }
        let answer = world.services[at].state().and_then(answer_of).filter(|answer| Some(*answer) != told);
        if let Some(answer) = answer {
            self.reply(world, at, answer, None);
        }
        true
    }

    /// Writes a command down, and sends it where another service does it.
    pub(crate) fn give_out(&self, world: &mut World, at: usize, command: Command) {
        let key = StepKey::of(command);
        let known = !matches!(command, Command::Undo { known: false, .. });
        let mut work = Work::new(known);
        if matches!(self.effect(at, key), Effect::Remote { .. }) {
            work.sent = 1;
            Self::note_sent(world, at, key);
            let message = self.command_message(key, known);
            self.send(world, at, message);
        }
        world.services[at].work.insert(key, work);
    }

    /// What a reply will name is decided when its command is given out.
    pub(crate) fn note_sent(world: &mut World, at: usize, key: StepKey) {
        let Some(saga) = &mut world.services[at].saga else { return };
        let sent = Some(Sent { message: key.message(), work: 1, given: 0 });
        let step = &mut saga.state.0.steps[key.step];
        if key.is_undo() { step.undo_sent = sent } else { step.sent = sent }
    }

    pub(crate) fn command_message(&self, key: StepKey, known: bool) -> Message {
        let id = key.message();
        let body = if key.is_undo() { Body::Undo { id, known } } else { Body::Command { id } };
        Message { from: 0, to: self.host_of(key.step), body }
    }

    /// Tells who asked for a hosted step. `asked` is the message that asked just now, where one did.
    pub(crate) fn reply(&self, world: &mut World, at: usize, answer: Answer, asked: Option<u128>) {
        let Some(caller) = world.services[at].state().and_then(|state| state.caller.as_deref()) else { return };
        let to = caller.reply_to.parse().unwrap_or(STRANGER);
        let Some(asked) = asked.or(caller.undo).or(caller.command) else { return };
        let body = Body::Reply { asked, said: Said(answer) };
        self.send(world, at, Message { from: at, to, body });
    }

    /// A message becomes part of the commit.
    pub(crate) fn send(&self, world: &mut World, at: usize, message: Message) {
        if self.bounds.is_sticky {
            world.network.insert(message, 1);
            return;
        }
        world.committed.insert(message);
        let outbox = &mut world.services[at].outbox;
        if !outbox.contains(&message) {
            outbox.push(message);
        }
    }

    fn spoil(&self, event: Event) -> Event {
        match event {
            Event::Unknown { step, failure } if self.has(Mutant::SkipsUnknown) => Event::Failed { step, failure },
            event => event,
        }
    }
}
