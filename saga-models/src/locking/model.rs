use stateright::{Model, Property};

use super::mistake::Mistake;
use super::properties::{ALWAYS, SOMETIMES};
use super::protocol::Locking;
use super::row::{Entities, RowState};
use super::transaction::{Kind, Phase};
use super::world::{Left, Reached, Saga, Stage, World};

/// What one lock can be.
const ONE: [Entities; 3] = [[true, false], [false, true], [true, true]];

/// What can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// The process of a saga begins a transaction.
    Begin(usize, Kind),
    /// A transaction takes a lock, looks at the rows, or decides what it writes.
    GoOn(usize),
    /// A transaction commits, and its process hears of it or not.
    Commit(usize, bool),
    /// A process stops, and its transaction with it. The saga goes on in another one.
    Crash(usize),
    /// A step of a saga fails behind its locks.
    Fail(usize),
}

impl Locking {
    /// What can happen next without a fault.
    pub(super) fn progress(&self, world: &World) -> Vec<Action> {
        let mut actions = Vec::new();
        for (number, saga) in world.sagas.iter().enumerate() {
            if let Some(transaction) = &saga.transaction {
                if matches!(transaction.phase, Phase::Committing(_)) {
                    actions.push(Action::Commit(number, true));
                } else if self.may_go_on(world, number) {
                    actions.push(Action::GoOn(number));
                }
                continue;
            }
            let row = world.table.find(number, saga.granted);
            let kinds: &[Kind] = match saga.stage {
                Stage::Running if saga.has_all() => &[Kind::End],
                Stage::Running if saga.may_try() && row.is_none() => match (saga.is_step, saga.locks.len()) {
                    (true, _) => &[Kind::Try],
                    (false, 1) => &[Kind::Try, Kind::Start],
                    (false, _) => &[Kind::Start],
                },
                Stage::Waiting if row.is_some_and(|row| row.state == RowState::Waiting) => &[Kind::GiveUp],
                Stage::Running | Stage::Waiting => &[Kind::Ask],
                Stage::Compensating => &[Kind::End],
                Stage::Ended => &[],
            };
            actions.extend(kinds.iter().map(|kind| Action::Begin(number, *kind)));
            if saga.stage == Stage::Running && saga.has_all() && !saga.is_step {
                actions.push(Action::Fail(number));
            }
        }
        actions
    }
}

impl Model for Locking {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let one = ONE.map(|first| Saga::new(vec![first], false));
        let two =
            ONE.into_iter().flat_map(|first| [ONE[0], ONE[1]].map(|second| Saga::new(vec![first, second], false)));
        let steps = ONE.map(|only| Saga::new(vec![only], true));
        let sagas: Vec<Saga> = one.into_iter().chain(two).chain(steps).collect();
        let left = Left { crashes: 1, lost_answers: 1 };
        // The sagas are alike, so each pair is there once.
        let others = |place: usize| sagas[place..].iter();
        let pairs = sagas
            .iter()
            .enumerate()
            .flat_map(|(place, first)| others(place).map(|second| [first.clone(), second.clone()]));
        pairs.map(|pair| World::new(pair, left)).collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.extend(self.progress(world));
        for (number, transaction) in world.sagas.iter().enumerate().map(|(number, saga)| (number, &saga.transaction)) {
            let Some(transaction) = transaction else { continue };
            if world.left.crashes > 0 {
                actions.push(Action::Crash(number));
            }
            if world.left.lost_answers > 0 && matches!(transaction.phase, Phase::Committing(_)) {
                actions.push(Action::Commit(number, false));
            }
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = World { reached: Reached::default(), ..before.clone() };
        match action {
            Action::Begin(saga, kind) => self.begin(&mut world, saga, kind),
            Action::GoOn(saga) => self.go_on(&mut world, saga),
            Action::Commit(saga, is_heard) => self.commit(&mut world, saga, is_heard),
            Action::Crash(saga) => {
                world.left.crashes -= 1;
                world.sagas[saga].transaction = None;
            }
            Action::Fail(saga) if self.has(Mistake::EndsBeforeTheUndo) => self.begin(&mut world, saga, Kind::EndEarly),
            Action::Fail(saga) => world.sagas[saga].stage = Stage::Compensating,
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = ALWAYS.iter().map(|&(name, holds)| Property::always(name, holds));
        let sometimes = SOMETIMES.iter().map(|&(name, holds)| Property::sometimes(name, holds));
        always.chain(sometimes).collect()
    }
}
