use saga_reservations::State;
use stateright::{Model, Property};

use super::client::{Ask, Client, Message};
use super::mistake::Mistake;
use super::properties::{ALWAYS, SOMETIMES};
use super::protocol::Reserving;
use super::world::{AGE_MAX, Reached, World};

/// When a run ends.
const END: i64 = 3;

/// The client that does all that a client may do, loses answers, and uses its key again. If both did, there would be too many
/// states.
const RETURNING: usize = 1;

/// What the other client asks for: it is there to take units, and to have them or to give them up.
fn is_of_the_other(ask: Ask) -> bool {
    matches!(ask, Ask::Reserve | Ask::Confirm(_) | Ask::Release(Some(_)))
}

/// What can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A client sends a message.
    Send(usize, Ask),
    /// A client whose reservation was forgotten uses its key again.
    BeginAgain(usize),
    /// A message comes, for the first time or again. The client gets the answer, or it is lost.
    Deliver(Message, bool),
    /// A transaction reads the book without a lock.
    Read(Message),
    /// It writes what it has decided.
    Write,
    /// The sweeper reads which holds are over.
    ReadOverdue,
    /// The sweeper ends them.
    Sweep,
    /// What ended long ago is forgotten.
    Prune,
}

impl Model for Reserving {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.now < END {
            actions.push(Action::Tick);
        }
        for (client, state) in world.clients.iter().enumerate() {
            let asks = state.asks().into_iter().filter(|ask| client == RETURNING || is_of_the_other(*ask));
            actions.extend(asks.map(|ask| Action::Send(client, ask)));
            if client == RETURNING && Self::may_begin_again(world, client) {
                actions.push(Action::BeginAgain(client));
            }
        }
        for message in &world.messages {
            if self.has(Mistake::DecidesOnOldRows) && world.read.is_none() {
                actions.push(Action::Read(*message));
            }
            actions.push(Action::Deliver(*message, true));
            if message.client == RETURNING {
                actions.push(Action::Deliver(*message, false));
            }
        }
        if world.read.is_some() {
            actions.push(Action::Write);
        }
        // A sweeper that looks again at what it has read may as well read it then.
        let must_read = self.has(Mistake::SweepsWhatItRead) && world.swept.is_none();
        actions.push(if must_read { Action::ReadOverdue } else { Action::Sweep });
        actions.push(Action::Prune);
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = World { reached: Reached::default(), ..before.clone() };
        match action {
            Action::Tick => {
                world.now += 1;
                let now = world.now;
                world.messages.retain(|message| now - message.at <= AGE_MAX);
            }
            Action::Send(client, ask) => {
                world.clients[client].has_sent(ask);
                world.messages.insert(Message { client, ask, at: world.now });
            }
            Action::BeginAgain(client) => world.clients[client] = Client::default(),
            Action::Deliver(message, is_answered) => self.deliver(&mut world, message, is_answered),
            Action::Read(message) => world.read = Some((world.book.clone(), message)),
            Action::Write => {
                let (read, message) = world.read.take()?;
                self.write(&mut world, read, message);
            }
            Action::ReadOverdue => {
                let keys = (0..2).map(World::key);
                let overdue: Vec<_> = keys
                    .filter(|key| world.book.reservation(key).is_some_and(|found| found.is_overdue(world.clock())))
                    .collect();
                world.swept = (!overdue.is_empty()).then_some(overdue);
            }
            Action::Sweep => self.sweep(&mut world),
            Action::Prune => {
                let pruned = world.book.prune(World::time(self.forgets_before(before)), usize::MAX);
                world.reached.forgotten |= pruned > 0;
            }
        }
        note_early_ends(before, &mut world);
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = ALWAYS.iter().map(|&(name, holds)| Property::always(name, holds));
        let sometimes = SOMETIMES.iter().map(|&(name, holds)| Property::sometimes(name, holds));
        always.chain(sometimes).collect()
    }
}

/// A client that was told of a hold, and has not decided about it, has it until its time.
fn note_early_ends(before: &World, world: &mut World) {
    for (number, client) in world.clients.iter().enumerate() {
        let is_in_time = client.held_until.is_some_and(|until| world.now < until) && !client.has_decided;
        let key = World::key(number);
        let had = before.book.reservation(&key).is_some_and(|found| found.state == State::Held);
        let has = world.book.reservation(&key).is_some_and(|found| found.state == State::Held);
        world.broken.ended_early |= is_in_time && had && !has;
    }
}
