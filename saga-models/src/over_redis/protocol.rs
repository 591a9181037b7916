//! What a server does in one step: one script, or one transaction.

use super::mistake::Mistake;
use super::world::{FIRST_CONFIRMATION, Hold, KEY_OF, Known, Loader, RELEASE, Task, Token, World};

/// The protocol, with a mistake or without.
#[derive(Debug, Clone, Copy)]
pub struct OverRedis {
    mistake: Option<Mistake>,
}

impl OverRedis {
    /// The protocol as it is.
    pub fn sound() -> Self {
        Self { mistake: None }
    }

    /// The protocol with this mistake.
    pub fn with(mistake: Mistake) -> Self {
        Self { mistake: Some(mistake) }
    }

    pub(super) fn has(self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(super) fn step(self, world: &mut World, number: usize) {
        let key = KEY_OF[number];
        world.tasks[number] = match world.tasks[number] {
            Task::Begins if number == RELEASE => self.release(world, key),
            Task::Begins if number >= FIRST_CONFIRMATION => self.mark(world, key),
            Task::Begins => Self::hold(world, key),
            Task::Tells(read) => {
                self.tell(world, read);
                Task::Begins
            }
            Task::Looks(token) => Self::look(world, key, token),
            Task::Commits(epoch, token) => self.commit(world, key, epoch, token),
            Task::Moves(token) => {
                self.settle(world, key, token);
                Task::Ended
            }
            Task::Bars(epoch) => self.bar(world, key, epoch),
            Task::Ended => Task::Ended,
        };
    }

    /// Redis holds the unit, if it knows of SQL that it is free.
    fn hold(world: &mut World, key: usize) -> Task {
        if begins_epoch(world) {
            return Task::Begins;
        }
        if let Some(Hold::Held(token) | Hold::Marked(token)) = world.holds[key] {
            return Task::Looks(token);
        }
        match world.known.filter(|known| known.epoch == world.epoch) {
            None => Task::Tells(world.read()),
            Some(known) if !known.is_confirmed && world.holds.iter().all(Option::is_none) => {
                world.counter += 1;
                let token = (world.epoch, world.counter);
                world.holds[key] = Some(Hold::Held(token));
                if !world.is_loaded || world.noted[key] {
                    return Task::Looks(token);
                }
                // Redis knows that SQL does not have the key.
                world.was_unread |= world.is_in_sql(key);
                world.told_held[key] = world.told_held[key].max(Some(token));
                Task::Ended
            }
            Some(_) => Task::Ended,
        }
    }

    fn look(world: &mut World, key: usize, token: Token) -> Task {
        if !world.is_in_sql(key) {
            world.told_held[key] = world.told_held[key].max(Some(token));
        } else if world.holds[key] == Some(Hold::Held(token)) {
            world.holds[key] = None;
        }
        Task::Ended
    }

    fn mark(self, world: &mut World, key: usize) -> Task {
        if begins_epoch(world) {
            return Task::Begins;
        }
        let Some(Hold::Held(token) | Hold::Marked(token)) = world.holds[key] else { return Task::Ended };
        if Some(token) != world.told_held[key] {
            return Task::Ended;
        }
        world.holds[key] = Some(Hold::Marked(token));
        world.told_confirmed[key] |= self.has(Mistake::RedisConfirmedFirst);
        Task::Commits(world.epoch, token)
    }

    fn commit(self, world: &mut World, key: usize, epoch: u8, token: Token) -> Task {
        if world.epoch != epoch && !self.has(Mistake::NoFence) {
            return Task::Begins;
        }
        if self.confirm(world, key, token) { Task::Moves(token) } else { Task::Ended }
    }

    /// Says whether SQL has confirmed this hold. A refusal ends it.
    fn confirm(self, world: &mut World, key: usize, token: Token) -> bool {
        if !world.is_confirmed() && !world.barred[key] {
            world.confirmed[key] = Some(token);
            world.version += 1;
        }
        let is_confirmed = world.confirmed[key] == Some(token);
        world.told_confirmed[key] |= is_confirmed;
        if !is_confirmed {
            self.settle(world, key, token);
        }
        is_confirmed
    }

    /// Redis is told what SQL has, and ends the hold, in one script.
    fn settle(self, world: &mut World, key: usize, token: Token) {
        if !world.is_in_epoch() {
            return;
        }
        if world.holds[key] == Some(Hold::Marked(token)) || world.holds[key] == Some(Hold::Held(token)) {
            world.holds[key] = None;
            // What ended is forgotten, and then only SQL has it.
            world.noted[key] |= world.is_in_sql(key);
        }
        let read = world.read();
        self.tell(world, read);
    }

    /// A hold is ended in Redis. Where there is none, or SQL is asked to confirm it, the release is written in SQL.
    fn release(self, world: &mut World, key: usize) -> Task {
        if begins_epoch(world) {
            return Task::Begins;
        }
        if let Some(Hold::Held(_)) = world.holds[key] {
            world.holds[key] = None;
            return Task::Ended;
        }
        world.noted[key] |= !self.has(Mistake::ReleaseIsNotNoted);
        Task::Bars(world.epoch)
    }

    fn bar(self, world: &mut World, key: usize, epoch: u8) -> Task {
        if world.epoch != epoch && !self.has(Mistake::ReleaseIsNotFenced) {
            return Task::Begins;
        }
        world.barred[key] |= world.confirmed[key].is_none();
        if let Some(Hold::Marked(token)) = world.holds[key] {
            self.settle(world, key, token);
        }
        Task::Ended
    }

    /// Reads the keys of SQL, and then tells Redis.
    pub(super) fn load(self, world: &mut World, number: usize) {
        let Loader::Read(epoch, keys) = world.loaders[number] else {
            world.loaders[number] = Loader::Read(world.epoch, std::array::from_fn(|key| world.is_in_sql(key)));
            world.is_loaded |= self.has(Mistake::LoadedBeforeItEnds);
            return;
        };
        world.loaders[number] = Loader::Idle;
        if world.redis_epoch == Some(epoch) || (self.has(Mistake::LoadedInAnyEpoch) && world.is_in_epoch()) {
            for (noted, is_read) in world.noted.iter_mut().zip(keys) {
                *noted |= is_read;
            }
            world.is_loaded = true;
        }
    }

    /// A mark that was left behind: the sweeper sends the confirmation to SQL again.
    pub(super) fn sweep(self, world: &mut World, key: usize) {
        if let Some(Hold::Marked(token)) = world.holds[key]
            && self.confirm(world, key, token)
        {
            self.settle(world, key, token);
        }
    }

    fn tell(self, world: &mut World, read: Known) {
        let Some(epoch) = world.redis_epoch else { return };
        if epoch != read.epoch && !self.has(Mistake::ToldInAnyEpoch) {
            return;
        }
        let newer = world.known.filter(|known| known.epoch == epoch && known.version > read.version);
        if newer.is_none() || self.has(Mistake::ToldInAnyOrder) {
            world.known = Some(Known { epoch, ..read });
        }
    }
}

/// A script that finds no epoch of SQL's begins one, and is called again.
fn begins_epoch(world: &mut World) -> bool {
    if world.is_in_epoch() {
        return false;
    }
    world.epoch += 1;
    (world.redis_epoch, world.counter) = (Some(world.epoch), 0);
    true
}
