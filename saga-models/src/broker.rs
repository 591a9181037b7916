//! The way of a message from the outbox of one service to the inbox of another.

use crate::message::{Body, Message};
use crate::plant::Plant;
use crate::protocol::Protocol;
use crate::world::World;

impl Protocol {
    /// Whether a row of the outbox may be sent now: of one ordering key only one message is unconfirmed.
    pub(crate) fn is_next(&self, outbox: &[(Message, bool)], row: usize) -> bool {
        let (message, is_published) = outbox[row];
        let waits = message.is_event() && outbox[..row].iter().any(|(earlier, _)| earlier.is_event());
        !is_published && (!waits || self.has(Plant::SendsPastUnconfirmed))
    }

    /// The broker accepts a message.
    pub(crate) fn publish(world: &mut World, at: usize, row: usize) -> bool {
        let (message, is_published) = &mut world.services[at].outbox[row];
        *is_published = true;
        if let Body::Event { position } = message.body {
            if !world.accepted.contains(&position) {
                world.accepted.push(position);
            }
        } else {
            world.network.entry(*message).or_default().waiting += 1;
        }
        true
    }

    /// The broker does not accept a message.
    pub(crate) fn refuse(&self, world: &mut World, at: usize, row: usize) -> bool {
        world.left.refusals -= 1;
        if self.has(Plant::DeletesUnconfirmed) {
            world.services[at].outbox.remove(row);
        }
        true
    }

    /// The relay of a service dies, and forgets what it had published.
    pub(crate) fn crash_relay(world: &mut World, at: usize) -> bool {
        world.left.crashes -= 1;
        let service = &mut world.services[at];
        service.outbox.iter_mut().for_each(|(_, is_published)| *is_published = false);
        service.in_hand.clear();
        true
    }

    /// A message comes to its receiver, which stores it before it settles it.
    pub(crate) fn deliver(&self, world: &mut World, message: Message) -> bool {
        if self.bounds.is_sticky {
            return self.handle(world, message);
        }
        if let Some(copies) = world.network.get_mut(&message) {
            copies.waiting -= 1;
            copies.unsettled += 1;
        }
        if self.has(Plant::SettlesBeforeStoring) {
            world.services[message.to].in_hand.insert(message);
            return Self::settle_message(world, message);
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

    /// The receiver says that it has a message.
    pub(crate) fn settle_message(world: &mut World, message: Message) -> bool {
        let Some(copies) = world.network.get_mut(&message) else { return false };
        copies.unsettled -= 1;
        forget_if_gone(world, message);
        true
    }

    /// The broker delivers again what was not settled.
    pub(crate) fn redeliver(world: &mut World, message: Message) -> bool {
        world.left.losses -= 1;
        let Some(copies) = world.network.get_mut(&message) else { return false };
        copies.unsettled -= 1;
        copies.waiting += 1;
        true
    }

    /// The broker loses a message.
    pub(crate) fn lose(world: &mut World, message: Message) -> bool {
        world.left.losses -= 1;
        let Some(copies) = world.network.get_mut(&message) else { return false };
        copies.waiting -= 1;
        forget_if_gone(world, message);
        true
    }
}

fn forget_if_gone(world: &mut World, message: Message) {
    if world.network.get(&message).is_some_and(|copies| copies.waiting + copies.unsettled == 0) {
        world.network.remove(&message);
    }
}
