use stateright::{Model, Property};

use super::horizons::Horizons;
use super::message::{Body, Held};
use super::mistake::Mistake;
use super::properties::{ALWAYS, SOMETIMES};
use super::world::{Left, Row, SAGAS, Stage, World};

/// When a run ends: two sagas have had the key one after the other.
const END: i8 = 14;
/// How much later than it may be a saga is purged at most.
const LATE_MAX: i8 = 2;

/// Purging, and perhaps a mistake in it.
///
/// Three things are taken for granted, as the runtime does: the message that a saga is closed is not lost, and comes before it is
/// too old; a host deletes a record when its time is over, before the next tick.
#[derive(Debug, Clone)]
pub struct Purging {
    mistake: Option<Mistake>,
    horizons: Horizons,
}

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
}

impl Purging {
    /// The model without a mistake.
    pub fn sound() -> Self {
        Self { mistake: None, horizons: Horizons::of(None) }
    }

    /// The model with a mistake.
    pub fn with(mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), horizons: Horizons::of(Some(mistake)) }
    }

    fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn is_accepted(&self, world: &World, message: &Held) -> bool {
        world.age(message) <= self.horizons.age_max || self.has(Mistake::ActsOnOldMessages)
    }

    /// Whether the host has a record whose time is over.
    fn is_hosted_due(world: &World) -> bool {
        world.row.is_some_and(|row| row.delete_at.is_some_and(|at| at <= world.host_now()))
    }

    fn may_tick(&self, world: &World) -> bool {
        let is_waiting = |message: &Held| matches!(message.body, Body::Closed(_)) && !message.has_come;
        let would_be_missed = |message: &Held| is_waiting(message) && world.age(message) >= self.horizons.age_max;
        let is_late = matches!(world.stage, Stage::Ended(at) if world.now >= at + self.horizons.full + LATE_MAX);
        world.now < END && !is_late && !Self::is_hosted_due(world) && !world.messages.iter().any(would_be_missed)
    }

    fn may_purge_hosted(&self, world: &World) -> bool {
        let is_untold = self.has(Mistake::HostPurgesUntold) && world.row.is_some();
        is_untold || Self::is_hosted_due(world)
    }

    fn tick(&self, world: &mut World) {
        world.now += 1;
        let messages = std::mem::take(&mut world.messages);
        world.messages = messages.into_iter().filter(|message| self.is_accepted(world, message)).collect();
    }

    /// A saga ends.
    fn end(&self, world: &mut World) {
        world.stage = Stage::Ended(world.now);
        if self.has(Mistake::ClosesAtTheEnd) {
            world.send(Body::Closed(world.saga));
        }
    }

    fn purge(&self, world: &mut World, ended_at: i8) {
        if !self.has(Mistake::ClosesAtTheEnd) {
            world.send(Body::Closed(world.saga));
        }
        let from = if self.has(Mistake::CountsKeysFromTheEnd) { ended_at + self.horizons.full } else { world.now };
        world.stage = Stage::Tombstone(from + self.horizons.key);
    }

    fn deliver(&self, world: &mut World, message: Held) {
        world.messages.remove(&message);
        world.messages.insert(Held { has_come: true, ..message });
        world.acted_at_age_max |= world.age(&message) == self.horizons.age_max;
        match message.body {
            Body::Command(saga) => Self::command(world, saga),
            Body::Undo(saga) => Self::undo(world, saga),
            Body::Closed(_) => {
                let delete_at = Some(world.host_now() + self.horizons.hosted);
                world.row = world.row.map(|row| Row { delete_at, ..row });
            }
            Body::Done { asked, of } if (world.saga, world.stage) == (asked, Stage::Asked) => {
                world.told_of_another |= asked != of;
                self.end(world);
            }
            Body::Undone { asked, of } if (world.saga, world.stage) == (asked, Stage::Undoing) => {
                world.told_of_another |= asked != of;
                self.end(world);
            }
            Body::Done { .. } | Body::Undone { .. } => {}
        }
    }

    /// The host does the step, or answers again from its record.
    fn command(world: &mut World, asked: usize) {
        let row = world.row.unwrap_or_else(|| {
            world.effects[asked] += 1;
            world.acted_on_purged |= world.is_purged(asked);
            Row { of: asked, is_undone: false, delete_at: None }
        });
        world.row = Some(row);
        if !row.is_undone {
            world.send(Body::Done { asked, of: row.of });
        }
    }

    /// The host undoes the step, or bars it where it has no record of it.
    fn undo(world: &mut World, asked: usize) {
        let row = world.row.unwrap_or_else(|| {
            world.undid_nothing |= world.effects[asked] > world.undone[asked];
            Row { of: asked, is_undone: true, delete_at: None }
        });
        if !row.is_undone {
            world.undone[row.of] += 1;
        }
        world.row = Some(Row { is_undone: true, delete_at: None, ..row });
        world.send(Body::Undone { asked, of: row.of });
    }
}

impl Model for Purging {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        // Where messages never grow too old, there are many states without them.
        let often = u8::from(!self.has(Mistake::ActsOnOldMessages));
        let left = Left { losses: often, sends: often, actions: often };
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
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = ALWAYS.iter().map(|&(name, holds)| Property::always(name, holds));
        let sometimes = SOMETIMES.iter().map(|&(name, holds)| Property::sometimes(name, holds));
        always.chain(sometimes).collect()
    }
}
