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
/// A host deletes a record when its time is over, before the next tick. The message that a saga is closed is not lost, and comes
/// before it is too old; or else the host asks.
#[derive(Debug, Clone)]
pub struct Purging {
    pub(super) mistake: Option<Mistake>,
    pub(super) horizons: Horizons,
    /// Whether the message that a saga is closed may be lost, so that the host asks.
    pub(super) loses_closed: bool,
}

impl Purging {
    /// The model without a mistake.
    pub fn sound() -> Self {
        Self { mistake: None, horizons: Horizons::of(None), loses_closed: false }
    }

    /// The model without a mistake, where the message that a saga is closed may be lost.
    ///
    /// A key may then be used again while the host has the record of the saga before: this is not excluded, and no property says
    /// so here.
    pub fn where_closed_is_lost() -> Self {
        Self { loses_closed: true, ..Self::sound() }
    }

    /// The model with a mistake.
    pub fn with(mistake: Mistake) -> Self {
        let loses_closed = mistake.is_about_questions();
        Self { mistake: Some(mistake), horizons: Horizons::of(Some(mistake)), loses_closed }
    }

    pub(super) fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn is_accepted(&self, world: &World, message: &Held) -> bool {
        let is_ageless = match message.body {
            Body::Answer(_) => self.has(Mistake::ActsOnOldAnswers),
            _ => self.has(Mistake::ActsOnOldMessages),
        };
        is_ageless || world.age(message) <= self.horizons.age_max
    }

    /// Whether the host has a record whose time is over.
    fn is_hosted_due(world: &World) -> bool {
        world.row.is_some_and(|row| row.delete_at.is_some_and(|at| at <= world.host_now()))
    }

    pub(super) fn may_tick(&self, world: &World) -> bool {
        let is_waiting = |message: &Held| matches!(message.body, Body::Closed(_)) && !message.has_come;
        let would_be_missed =
            |message: &Held| !self.loses_closed && is_waiting(message) && world.age(message) >= self.horizons.age_max;
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
            Body::Closed(_) | Body::Answer(_) => {
                let delete_at = Some(world.host_now() + self.horizons.hosted);
                world.row = world.row.map(|row| Row { delete_at, ..row });
            }
            Body::Question { of, ended_ago } => self.answer(world, of, ended_ago, message.at),
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

    /// The host asks whether the saga of its record is closed.
    pub(super) fn ask(world: &mut World) {
        let Some(row) = world.row else { return };
        world.left.questions -= 1;
        world.send(Body::Question { of: row.of, ended_ago: world.host_now() - row.ended_at });
    }

    /// The host hears that the saga is closed, or nothing.
    fn answer(&self, world: &mut World, of: usize, ended_ago: i8, asked_at: i8) {
        let is_closed = match world.stage {
            Stage::Tombstone(_) => true,
            Stage::Absent => ended_ago >= self.horizons.deleted_after(),
            Stage::Asked | Stage::Undoing | Stage::Ended(_) => self.has(Mistake::ClosesWhatIsKept),
        };
        if is_closed {
            world.told_of_unknown |= world.stage == Stage::Absent;
            let answer = Held { body: Body::Answer(of), at: asked_at, has_come: false };
            // An answer to a question that came late may be too old from the first.
            if self.is_accepted(world, &answer) {
                world.messages.insert(answer);
            }
        }
    }

    /// The host does the step, or answers again from its record.
    fn command(world: &mut World, asked: usize) {
        let ended_at = world.host_now();
        let row = world.row.unwrap_or_else(|| {
            world.effects[asked] += 1;
            world.acted_on_purged |= world.is_purged(asked);
            Row { of: asked, is_undone: false, ended_at, delete_at: None }
        });
        world.row = Some(row);
        if !row.is_undone {
            world.send(Body::Done { asked, of: row.of });
        }
    }

    /// The host undoes the step, or bars it where it has no record of it.
    fn undo(world: &mut World, asked: usize) {
        let ended_at = world.host_now();
        let row = world.row.unwrap_or_else(|| {
            world.undid_nothing |= world.effects[asked] > world.undone[asked];
            Row { of: asked, is_undone: true, ended_at, delete_at: None }
        });
        if !row.is_undone {
            world.undone[row.of] += 1;
        }
        world.row = Some(Row { is_undone: true, ended_at, delete_at: None, ..row });
        world.send(Body::Undone { asked, of: row.of });
    }
}
