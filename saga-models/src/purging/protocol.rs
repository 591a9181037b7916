use super::horizons::Horizons;
use super::message::{Body, Held};
use super::mistake::Mistake;
use super::world::{Row, Stage, World};

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
    pub(super) mistake: Option<Mistake>,
    pub(super) horizons: Horizons,
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

    pub(super) fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn is_accepted(&self, world: &World, message: &Held) -> bool {
        world.age(message) <= self.horizons.age_max || self.has(Mistake::ActsOnOldMessages)
    }

    /// Whether the host has a record whose time is over.
    fn is_hosted_due(world: &World) -> bool {
        world.row.is_some_and(|row| row.delete_at.is_some_and(|at| at <= world.host_now()))
    }

    pub(super) fn may_tick(&self, world: &World) -> bool {
        let is_waiting = |message: &Held| matches!(message.body, Body::Closed(_)) && !message.has_come;
        let would_be_missed = |message: &Held| is_waiting(message) && world.age(message) >= self.horizons.age_max;
        let is_late = matches!(world.stage, Stage::Ended(at) if world.now >= at + self.horizons.full + LATE_MAX);
        world.now < END && !is_late && !Self::is_hosted_due(world) && !world.messages.iter().any(would_be_missed)
    }

    pub(super) fn may_purge_hosted(&self, world: &World) -> bool {
        let is_untold = self.has(Mistake::HostPurgesUntold) && world.row.is_some();
        is_untold || Self::is_hosted_due(world)
    }

    pub(super) fn tick(&self, world: &mut World) {
        world.now += 1;
        let messages = std::mem::take(&mut world.messages);
        world.messages = messages.into_iter().filter(|message| self.is_accepted(world, message)).collect();
    }

    /// A saga ends.
    pub(super) fn end(&self, world: &mut World) {
        world.stage = Stage::Ended(world.now);
        if self.has(Mistake::ClosesAtTheEnd) {
            world.send(Body::Closed(world.saga));
        }
    }

    pub(super) fn purge(&self, world: &mut World, ended_at: i8) {
        if !self.has(Mistake::ClosesAtTheEnd) {
            world.send(Body::Closed(world.saga));
        }
        let from = if self.has(Mistake::CountsKeysFromTheEnd) { ended_at + self.horizons.full } else { world.now };
        world.stage = Stage::Tombstone(from + self.horizons.key);
    }

    pub(super) fn deliver(&self, world: &mut World, message: Held) {
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
