//! What a message makes a service do.

use saga_core::machine::{
    self, Caller, Event, SagaState, answer_again, answer_of, answered_command, event_of_answer, undo_before_command,
};
use saga_core::store::Answer;

use crate::message::{Body, Message, Said};
use crate::mutant::Mutant;
use crate::protocol::Protocol;
use crate::world::{Saga, State, StepKey, World};

impl Protocol {
    /// Handles a message in one commit.
    pub(crate) fn handle(&self, world: &mut World, message: Message) -> bool {
        match message.body {
            Body::Command { id } => self.handle_command(world, message, id),
            Body::Undo { id, known } => self.handle_undo(world, message, id, known),
            Body::Reply { asked, said } => self.handle_reply(world, message, asked, said),
            Body::Event { .. } => false,
        }
    }

    /// Begins the hosted step, or answers again from its record.
    fn handle_command(&self, world: &mut World, message: Message, id: u128) -> bool {
        let at = message.to;
        if let Some(state) = world.services[at].state()
            && !self.has(Mutant::BeginsAgain)
        {
            let answer = answer_again(state, false);
            if let Some(answer) = answer.filter(|_| !self.has(Mutant::NeverAnswersAgain)) {
                self.reply(world, at, answer, Some(id));
            }
            return true;
        }
        let (mut state, commands) = machine::start(self.shape(at));
        state.caller = Some(Box::new(caller(message, Some(id), None)));
        world.services[at].saga = Some(Saga { state: State(state), payload: 0 });
        for command in commands {
            self.give_out(world, at, command);
        }
        true
    }

    /// Undoes a hosted step that was done, and bars one that was not.
    fn handle_undo(&self, world: &mut World, message: Message, id: u128, known: bool) -> bool {
        let at = message.to;
        let Some(saga) = &mut world.services[at].saga else {
            return self.take_back_unseen(world, message, id, known);
        };
        let state = &mut saga.state.0;
        let caller = state.caller.get_or_insert_with(|| Box::new(caller(message, None, None)));
        let first = caller.undo.replace(id);
        if let Some(answer) = answer_again(state, true).filter(|_| first.is_some()) {
            // Nothing is written but the reply.
            if let Some(caller) = &mut state.caller {
                caller.undo = first;
            }
            self.reply(world, at, answer, Some(id));
            return true;
        }
        let before = answer_of(state);
        if !self.advance(world, at, Event::UndoRequested) {
            return false;
        }
        // Nothing of it took effect before: there is nothing to undo.
        let answer = world.services[at].state().and_then(|state| answer_again(state, true));
        if let Some(answer) = answer.filter(|answer| Some(*answer) == before) {
            self.reply(world, at, answer, Some(id));
        }
        true
    }

    fn take_back_unseen(&self, world: &mut World, message: Message, id: u128, known: bool) -> bool {
        let at = message.to;
        if self.has(Mutant::NoTombstone) && !known {
            let body = Body::Reply { asked: id, said: Said(Answer::Undone) };
            self.send(world, at, Message { from: at, to: message.from, body });
            return true;
        }
        let (mut state, event) = undo_before_command(self.shape(at), known);
        state.caller = Some(Box::new(caller(message, None, Some(id))));
        world.services[at].saga = Some(Saga { state: State(state), payload: 0 });
        self.advance(world, at, event)
    }

    /// A reply becomes an event of the saga that waits for it. One that no saga waits for changes nothing.
    fn handle_reply(&self, world: &mut World, message: Message, asked: u128, said: Said) -> bool {
        let at = message.to;
        let key = StepKey::of_message(asked);
        let Some(state) = world.services.get(at).and_then(|service| service.state()) else { return true };
        let Some(found) = state.steps.get(key.step).and_then(|step| answered_command(step, asked)) else { return true };
        let before: SagaState = state.clone();
        let event = event_of_answer(key.step, found.undo, said.0, &self.reason, "a host");
        let mut after = world.clone();
        // The row that waits for the reply is withdrawn.
        after.services[at].work.remove(&key);
        if self.advance(&mut after, at, event) && after.services[at].state() != Some(&before) {
            *world = after;
        }
        true
    }

    /// A command becomes a dead letter, and its sender is told.
    pub(crate) fn bury(&self, world: &mut World, message: Message, said: Said) -> bool {
        let at = message.to;
        world.left.letters -= 1;
        let Body::Command { id } = message.body else { return false };
        if world.services[at].inbox.remove(&message) {
            world.services[at].letters.insert(message);
        }
        self.send(world, at, Message { from: at, to: message.from, body: Body::Reply { asked: id, said } });
        true
    }
}

fn caller(message: Message, command: Option<u128>, undo: Option<u128>) -> Caller {
    Caller { reply_to: message.from.to_string(), command, undo, traceparent: None, earlier: Vec::new() }
}
