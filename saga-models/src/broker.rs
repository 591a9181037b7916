//! The way of a message from the outbox of one service to the inbox of another.

use crate::message::{Body, Message};
use crate::mutant::Mutant;
use crate::protocol::Protocol;
use crate::world::World;

impl Protocol {
    /// Whether a row of the outbox may be sent now: of one ordering key only one message is unconfirmed.
    pub(crate) fn is_next(&self, outbox: &[Message], row: usize) -> bool {
        let waits = outbox[row].is_event() && outbox[..row].iter().any(Message::is_event);
        !waits || self.has(Mutant::SendsPastUnconfirmed)
    }

    /// The broker accepts a message.
    pub(crate) fn publish(world: &mut World, at: usize, row: usize) {
        let message = world.services[at].outbox[row];
        if let Body::Event { position } = message.body {
            if !world.accepted.contains(&position) {
                world.accepted.push(position);
            }
        } else {
            *world.network.entry(message).or_default() += 1;
        }
    }

    /// The broker does not accept a message.
    pub(crate) fn refuse(&self, world: &mut World, at: usize, row: usize) -> bool {
        world.left.refusals -= 1;
        if self.has(Mutant::DeletesUnconfirmed) {
            world.services[at].outbox.remove(row);
        }
        true
    }

    /// A message comes to its receiver, which stores it before it settles it.
    pub(crate) fn deliver(&self, world: &mut World, message: Message) -> bool {
        if self.bounds.is_sticky {
            return self.handle(world, message);
        }
        Self::take(world, message);
        if self.has(Mutant::SettlesBeforeStoring) {
            return world.services[message.to].in_hand.insert(message);
        }
        self.store(world, message)
    }

    /// A message is stored. What comes again is handled again, without a row: only its sender waits for it.
    pub(crate) fn store(&self, world: &mut World, message: Message) -> bool {
        let service = &mut world.services[message.to];
        service.in_hand.remove(&message);
        let is_reply = matches!(message.body, Body::Reply { .. });
        if is_reply || service.received.insert(message) {
            service.inbox.insert(message);
            return true;
        }
        service.inbox.contains(&message) || self.handle(world, message)
    }

    /// The broker has one copy less.
    pub(crate) fn take(world: &mut World, message: Message) {
        if let Some(copies) = world.network.get_mut(&message) {
            *copies -= 1;
            if *copies == 0 {
                world.network.remove(&message);
            }
        }
    }
}
