use stateright::{Model, Property};

use super::mistake::Mistake;
use super::properties::{ALWAYS, SOMETIMES};
use super::protocol::OverRedis;
use super::world::{FIRST_CONFIRMATION, Hold, KEY_OF, KEYS, Loader, RELEASE, Task, World};

/// What can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A server goes on with a task.
    Step(usize),
    /// The server of a task crashes.
    Crash(usize),
    /// The time of a hold is over.
    Expire(usize),
    /// The sweeper finds a mark.
    Sweep(usize),
    /// A server goes on with loading the keys of SQL.
    Load(usize),
    /// Redis loses everything.
    Flush,
}

impl Model for OverRedis {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (number, task) in world.tasks.iter().enumerate() {
            // A client confirms what it was told that it holds.
            let is_asked =
                number < FIRST_CONFIRMATION || number == RELEASE || world.told_held[KEY_OF[number]].is_some();
            if *task != Task::Ended && is_asked {
                actions.push(Action::Step(number));
                if *task != Task::Begins && world.left.crashes > 0 {
                    actions.push(Action::Crash(number));
                }
            }
        }
        for key in 0..KEYS {
            match world.holds[key] {
                Some(Hold::Held(_)) => actions.push(Action::Expire(key)),
                Some(Hold::Marked(_)) => {
                    actions.push(Action::Sweep(key));
                    if self.has(Mistake::MarkExpires) {
                        actions.push(Action::Expire(key));
                    }
                }
                None => {}
            }
        }
        for (number, loader) in world.loaders.iter().enumerate() {
            if *loader != Loader::Idle || (world.is_in_epoch() && !world.is_loaded) {
                actions.push(Action::Load(number));
            }
        }
        if world.left.flushes > 0 && world.redis_epoch.is_some() {
            actions.push(Action::Flush);
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Step(number) => self.step(&mut world, number),
            Action::Crash(number) => {
                world.left.crashes -= 1;
                world.tasks[number] = Task::Ended;
            }
            Action::Expire(key) => world.holds[key] = None,
            Action::Sweep(key) => self.sweep(&mut world, key),
            Action::Load(number) => {
                self.load(&mut world, number);
                world.loaders.sort_unstable();
            }
            Action::Flush => {
                world.left.flushes -= 1;
                world.was_flushed = true;
                (world.redis_epoch, world.counter, world.known, world.holds) = (None, 0, None, [None; KEYS]);
                world.noted = [false; KEYS];
                world.is_loaded &= self.has(Mistake::LoadedOutlivesFlush);
            }
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = ALWAYS.iter().map(|&(name, holds)| Property::always(name, holds));
        let sometimes = SOMETIMES.iter().map(|&(name, holds)| Property::sometimes(name, holds));
        always.chain(sometimes).collect()
    }
}
