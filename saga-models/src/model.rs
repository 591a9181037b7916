use saga_core::machine::{self, Effect, Event, Phase};
use saga_core::store::Answer;
use stateright::{Model, Property};

use crate::message::{Body, Message, STRANGER, STRANGERS, Said};
use crate::mutant::Mutant;
use crate::properties::{ALWAYS, EVENTUALLY, SOMETIMES};
use crate::protocol::Protocol;
use crate::task::Call;
use crate::world::{Answered, Client, Saga, Service, Stage, State, StepKey, World};

/// What can happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A client's start is committed.
    Start(usize),
    /// A client gets the answer to its start.
    Tell(usize),
    /// A process of a service claims work.
    Claim(usize, StepKey),
    /// A call that was claimed begins.
    Begin(usize, usize),
    /// The transaction of a task commits.
    Commit(usize, usize, Answered),
    /// A task calls the world outside.
    Call(usize, usize, Call),
    /// A task records what its call was answered.
    Record(usize, usize, Answered),
    /// A task brings to its saga what it knows of a call whose claim it had lost.
    Bring(usize, usize),
    /// A call that was given up arrives outside.
    Land(usize),
    /// A command goes to its host, for the first time or again.
    Send(StepKey),
    /// A row of an outbox is sent, and deleted when that is confirmed.
    Publish(usize, usize),
    /// A row of an outbox is sent, and its relay dies before it hears of it.
    PublishUnconfirmed(usize, usize),
    /// A message comes, is stored, and settled.
    Deliver(Message),
    /// A message comes and is stored, and its receiver dies before it has settled it.
    DeliverUnsettled(Message),
    /// A message that was only received is stored.
    Store(Message),
    /// A message that was stored is handled.
    Handle(Message),
    /// A process crashes.
    Crash(usize, usize),
    /// A lease ends while its owner is paused.
    Pause(usize, StepKey),
    /// The broker does not take a message.
    Refuse(usize, usize),
    /// The broker loses a message.
    Lose(Message),
    /// A command becomes a dead letter.
    Bury(Message, Said),
    /// A person replays a dead letter.
    Replay(Message),
    /// A person has a service try again what is stuck.
    Retry(usize),
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let clients = self.bounds.payloads.iter().map(|&payload| Client { payload, told: None });
        let mut world = World {
            services: vec![Service::default(); self.services()],
            outside: std::collections::BTreeMap::new(),
            network: std::collections::BTreeMap::new(),
            clients: clients.collect(),
            left: self.bounds.faults,
            accepted: Vec::new(),
            committed: std::collections::BTreeSet::new(),
            decided_stale: false,
        };
        if self.bounds.has_stranger {
            let [command, undo] = STRANGERS;
            for body in [Body::Command { id: command }, Body::Undo { id: undo, known: false }] {
                world.network.insert(Message { from: STRANGER, to: 1, body }, 1);
            }
        }
        vec![world]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.progress(world, actions);
        self.faults(world, actions);
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        (self.act(&mut world, action) && world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = ALWAYS.iter().map(|&(name, holds)| Property::always(name, holds));
        let sometimes = SOMETIMES.iter().map(|&(name, holds)| Property::sometimes(name, holds));
        let eventually = EVENTUALLY.iter().map(|&(name, holds)| Property::eventually(name, holds));
        always.chain(eventually).chain(sometimes).collect()
    }
}

impl Protocol {
    /// What happens when nothing goes wrong.
    pub(crate) fn progress(&self, world: &World, actions: &mut Vec<Action>) {
        for (nth, client) in world.clients.iter().enumerate() {
            let is_there = world.services[0].saga.is_some();
            if client.told.is_none() && !is_there {
                actions.push(Action::Start(nth));
            }
            if client.told.is_none() && (is_there || self.has(Mutant::AnswersBeforeCommit)) {
                actions.push(Action::Tell(nth));
            }
        }
        for (at, service) in world.services.iter().enumerate() {
            for (&key, work) in &service.work {
                if self.is_claimable(world, at, key, work) {
                    actions.push(Action::Claim(at, key));
                }
                if matches!(self.effect(at, key), Effect::Remote { .. }) && work.sent == 0 {
                    actions.push(Action::Send(key));
                }
            }
            for (nth, task) in service.tasks.iter().enumerate() {
                match task.stage {
                    Stage::Waiting => actions.push(Action::Begin(at, nth)),
                    Stage::Began if self.effect(at, task.key) == Effect::External => {
                        actions.push(Action::Call(at, nth, Call::Done));
                    }
                    Stage::Began | Stage::Written => actions.push(Action::Commit(at, nth, Answered::Done)),
                    Stage::Answered(answered) => actions.push(Action::Record(at, nth, answered)),
                    Stage::Late | Stage::LateUnknown => actions.push(Action::Bring(at, nth)),
                }
            }
            let rows = (0..service.outbox.len()).filter(|&row| self.is_next(&service.outbox, row));
            actions.extend(rows.map(|row| Action::Publish(at, row)));
            actions.extend(service.in_hand.iter().copied().map(Action::Store));
            actions.extend(service.inbox.iter().copied().map(Action::Handle));
        }
        actions
            .extend(world.outside.iter().filter(|(_, outside)| outside.is_flying).map(|(&step, _)| Action::Land(step)));
        let messages = world.network.keys().copied().filter(|message| message.to != STRANGER);
        actions.extend(messages.map(Action::Deliver));
        // A client that waits for a reply sends again when the time is up: long after everything else has come to its end.
        // Earlier duplicates are the broker's.
        if actions.is_empty() && !self.bounds.is_sticky && !self.has(Mutant::NeverSendsAgain) {
            let waiting = world.services[0].work.iter();
            let again = waiting.filter(|(_, work)| (1..self.bounds.sends).contains(&work.sent));
            actions.extend(again.map(|(&key, _)| Action::Send(key)));
        }
    }

    /// What goes wrong, and what a person does.
    fn faults(&self, world: &World, actions: &mut Vec<Action>) {
        let left = &world.left;
        for (at, service) in world.services.iter().enumerate() {
            for (nth, task) in service.tasks.iter().enumerate() {
                if task.stage == Stage::Began && self.effect(at, task.key) == Effect::Transactional {
                    if left.rejections > 0 && !task.key.is_undo() {
                        actions.push(Action::Commit(at, nth, Answered::Rejected));
                    }
                    if left.errors > 0 {
                        actions.push(Action::Commit(at, nth, Answered::Erred));
                    }
                }
                let calls = self.calls(world, at, task).into_iter().filter(|call| *call != Call::Done);
                actions.extend(calls.map(|call| Action::Call(at, nth, call)));
                if left.crashes > 0 && Self::may_crash(world, at, task) {
                    actions.push(Action::Crash(at, nth));
                }
                let is_call = self.effect(at, task.key) == Effect::External && !Self::is_stale(world, at, task);
                if left.pauses > 0 && is_call && service.work[&task.key].is_leased {
                    actions.push(Action::Pause(at, task.key));
                }
            }
            let rows = || (0..service.outbox.len()).filter(|&row| self.is_next(&service.outbox, row));
            if left.refusals > 0 {
                actions.extend(rows().map(|row| Action::Refuse(at, row)));
            }
            if left.repeats > 0 {
                actions.extend(rows().map(|row| Action::PublishUnconfirmed(at, row)));
            }
            if left.letters > 0 && service.saga.is_none() {
                let sticky = world.network.keys().filter(|message| message.to == at && self.bounds.is_sticky);
                let commands = service.inbox.iter().chain(sticky).filter(|message| message.is_command());
                let answers = [Answer::Refused, Answer::Unknown].map(Said);
                actions.extend(commands.flat_map(|message| answers.map(|said| Action::Bury(*message, said))));
            }
            if left.actions > 0 {
                actions.extend(service.letters.iter().copied().map(Action::Replay));
                if service.state().is_some_and(|state| state.stuck.is_some()) {
                    actions.push(Action::Retry(at));
                }
            }
        }
        if !self.bounds.is_sticky {
            for &message in world.network.keys() {
                if left.losses > 0 {
                    actions.push(Action::Lose(message));
                }
                if left.repeats > 0 && message.to != STRANGER {
                    actions.push(Action::DeliverUnsettled(message));
                }
            }
        }
    }

    fn act(&self, world: &mut World, action: Action) -> bool {
        match action {
            Action::Start(nth) => self.start(world, nth),
            Action::Tell(nth) => self.tell(world, nth),
            Action::Claim(at, key) => self.claim(world, at, key),
            Action::Commit(at, nth, answered) => {
                match answered {
                    Answered::Done => {}
                    Answered::Rejected => world.left.rejections -= 1,
                    Answered::Erred => world.left.errors -= 1,
                }
                self.commit(world, at, nth, answered)
            }
            Action::Call(at, nth, call) => Self::call(world, at, nth, call),
            Action::Record(at, nth, answered) => self.record(world, at, nth, answered),
            Action::Bring(at, nth) => self.bring(world, at, nth),
            Action::Land(step) => {
                let outside = world.outside.entry(step).or_default();
                outside.is_flying = false;
                outside.takes_effect();
                true
            }
            Action::Send(key) => self.send_again(world, key),
            Action::Publish(at, row) => {
                Self::publish(world, at, row);
                world.services[at].outbox.remove(row);
                true
            }
            Action::PublishUnconfirmed(at, row) => {
                world.left.repeats -= 1;
                Self::publish(world, at, row);
                true
            }
            Action::Deliver(message) => self.deliver(world, message),
            Action::DeliverUnsettled(message) => {
                world.left.repeats -= 1;
                self.store(world, message)
            }
            Action::Store(message) => self.store(world, message),
            Action::Handle(message) => {
                world.services[message.to].inbox.remove(&message);
                self.handle(world, message)
            }
            Action::Crash(at, nth) => self.crash(world, at, nth),
            Action::Begin(at, nth) => self.begin(world, at, nth),
            Action::Pause(at, key) => self.pause(world, at, key),
            Action::Refuse(at, row) => self.refuse(world, at, row),
            Action::Lose(message) => {
                world.left.losses -= 1;
                Self::take(world, message);
                true
            }
            Action::Bury(message, said) => self.bury(world, message, said),
            Action::Replay(letter) => {
                world.left.actions -= 1;
                let service = &mut world.services[letter.to];
                service.letters.remove(&letter) && service.inbox.insert(letter)
            }
            Action::Retry(at) => {
                world.left.actions -= 1;
                self.advance(world, at, Event::Operator(machine::Action::Retry))
            }
        }
    }

    /// Starts the saga with the first command: the key is taken by one saga.
    fn start(&self, world: &mut World, client: usize) -> bool {
        let payload = world.clients[client].payload;
        let (state, commands) = machine::start(self.shape(0));
        world.services[0].saga = Some(Saga { state: State(state), payload });
        for command in commands {
            self.give_out(world, 0, command);
        }
        true
    }

    fn tell(&self, world: &mut World, client: usize) -> bool {
        let saga = world.services[0].saga.as_ref();
        let client = &mut world.clients[client];
        let is_own = saga.is_none_or(|saga| saga.payload == client.payload);
        client.told = Some(is_own || self.has(Mutant::TakesAnyPayload));
        true
    }

    fn send_again(&self, world: &mut World, key: StepKey) -> bool {
        let Some(work) = world.services[0].work.get_mut(&key) else { return false };
        work.sent += 1;
        let message = self.command_message(key, work.known);
        self.send(world, 0, message);
        true
    }

    /// Whether nothing more happens by itself.
    pub(crate) fn is_at_rest(&self, world: &World) -> bool {
        let is_busy = |service: &Service| {
            !service.tasks.is_empty()
                || !service.inbox.is_empty()
                || !service.in_hand.is_empty()
                || service.outbox.iter().any(|message| !message.is_event())
        };
        if world.services.iter().any(is_busy) {
            return false;
        }
        let mut actions = Vec::new();
        self.progress(world, &mut actions);
        actions.into_iter().all(|action| self.next_state(world, action).is_none())
    }

    /// Whether the coordinator's saga has ended, or needs a person; of a stranger's step the same.
    pub(crate) fn has_ended(&self, world: &World) -> bool {
        let at = usize::from(self.bounds.has_stranger);
        let is_over = |state: &machine::SagaState| {
            state.stuck.is_some() || matches!(state.phase, Phase::Completed | Phase::Compensated)
        };
        world.services[at].state().is_some_and(is_over)
    }
}
