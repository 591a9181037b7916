use stateright::{Model, Property};

use super::message::{Body, Held};
use super::mistake::Mistake;
use super::properties::{ALWAYS, SOMETIMES, SOMETIMES_WHERE_CLOSED_IS_LOST};
use super::protocol::Purging;
use super::world::{Left, SAGAS, Stage, World};

/// What can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A client starts a saga under the key.
    Start,
    /// A command is sent again.
    SendAgain,
    /// A message comes, for the first time or again.
    Deliver(Held),
    /// The broker loses a message.
    Lose(Held),
    /// An operator ends a saga that waits.
    End,
    /// An operator reopens a saga that has ended.
    Reopen,
    /// The records of an ended saga are purged.
    Purge,
    /// The tombstone of a saga is deleted.
    Delete,
    /// The host purges its record.
    PurgeHosted,
    /// The host asks whether the saga of its record is closed.
    Ask,
}

impl Model for Purging {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        // Where messages never grow too old, there are many states without them.
        let often = u8::from(!self.has(Mistake::ActsOnOldMessages));
        // A message that grows too old is lost as well. One question is enough: its answer may come again, behind all else.
        let (losses, questions) = if self.loses_closed { (0, 1) } else { (often, 0) };
        let left = Left { losses, sends: often, actions: often, questions };
        let skew = self.horizons.skew;
        [-skew, skew].into_iter().map(|ahead| World::new(ahead, left)).collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let (left, now) = (world.left, world.now);
        if self.may_tick(world) {
            actions.push(Action::Tick);
        }
        match world.stage {
            Stage::Absent if world.saga < SAGAS => actions.push(Action::Start),
            Stage::Asked if left.sends > 0 => actions.push(Action::SendAgain),
            Stage::Ended(at) if now >= at + self.horizons.full => actions.push(Action::Purge),
            Stage::Tombstone(at) if now >= at => actions.push(Action::Delete),
            _ => {}
        }
        if left.actions > 0 {
            match world.stage {
                Stage::Asked => actions.push(Action::End),
                Stage::Ended(_) => actions.push(Action::Reopen),
                _ => {}
            }
        }
        if self.may_purge_hosted(world) {
            actions.push(Action::PurgeHosted);
        }
        if left.questions > 0 && world.row.is_some_and(|row| row.delete_at.is_none()) {
            actions.push(Action::Ask);
        }
        for message in &world.messages {
            actions.push(Action::Deliver(*message));
            if left.losses > 0 && !matches!(message.body, Body::Closed(_)) {
                actions.push(Action::Lose(*message));
            }
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match (action, world.stage) {
            (Action::Tick, _) => self.tick(&mut world),
            (Action::Start, _) => {
                world.stage = Stage::Asked;
                world.send(Body::Command(world.saga));
            }
            (Action::SendAgain, _) => {
                world.left.sends -= 1;
                world.send(Body::Command(world.saga));
            }
            (Action::Deliver(message), _) => self.deliver(&mut world, message),
            (Action::Lose(message), _) => {
                world.left.losses -= 1;
                world.messages.remove(&message);
            }
            (Action::End, _) => {
                world.left.actions -= 1;
                self.end(&mut world);
            }
            (Action::Reopen, _) => {
                world.left.actions -= 1;
                world.stage = Stage::Undoing;
                world.send(Body::Undo(world.saga));
            }
            (Action::Purge, Stage::Ended(at)) => self.purge(&mut world, at),
            (Action::Purge, _) => return None,
            (Action::Delete, _) => {
                world.stage = Stage::Absent;
                world.saga += 1;
            }
            (Action::PurgeHosted, _) => world.row = None,
            (Action::Ask, _) => Self::ask(&mut world),
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = ALWAYS.iter().map(|&(name, holds)| Property::always(name, holds));
        let sometimes = SOMETIMES.iter().chain(SOMETIMES_WHERE_CLOSED_IS_LOST.iter().filter(|_| self.loses_closed));
        always.chain(sometimes.map(|&(name, holds)| Property::sometimes(name, holds))).collect()
    }
}
