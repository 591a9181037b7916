use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use saga_core::machine::{Command, SagaState};
use saga_core::store::RecordedOutcome;

use crate::bounds::Faults;
use crate::message::Message;

/// Everything that is, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// The service that coordinates the saga, and behind it one host for each step that another service does.
    pub services: Vec<Service>,
    /// The world outside, by the step that calls it.
    pub outside: BTreeMap<usize, Outside>,
    /// What the broker has, and how many copies of it.
    pub network: BTreeMap<Message, u8>,
    /// The client that starts the saga.
    pub clients: Vec<Client>,
    /// What may still go wrong.
    pub left: Faults,
    /// Events in the order in which the broker first accepted them.
    pub accepted: Vec<u64>,
    /// Messages whose commit happened.
    pub committed: BTreeSet<Message>,
    /// Whether a task decided after it had lost the claim.
    pub decided_stale: bool,
}

/// A service with a database of its own. Only what it stores outlives its processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Service {
    /// The one saga that it has: of the coordinator the saga itself, of a host the hosted step.
    pub saga: Option<Saga>,
    /// The step records.
    pub records: BTreeMap<StepKey, RecordedOutcome>,
    /// The work rows.
    pub work: BTreeMap<StepKey, Work>,
    /// Messages that were stored and not handled.
    pub inbox: BTreeSet<Message>,
    /// Commands and undos that were stored at some time.
    pub received: BTreeSet<Message>,
    /// Commands that became dead letters.
    pub letters: BTreeSet<Message>,
    /// What is to be sent, in commit order.
    pub outbox: Vec<Message>,
    /// What its processes have under way.
    pub tasks: Vec<Task>,
    /// What a process has received, and not stored: only a mistake leaves something here.
    pub in_hand: BTreeSet<Message>,
    /// How often the effect of a transactional step key was committed.
    pub effects: BTreeMap<StepKey, u8>,
}

/// A saga's row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Saga {
    /// The machine's state.
    pub state: State,
    /// With which payload it was started.
    pub payload: u8,
}

/// The machine's state. Reasons in words decide nothing, so states that differ in them only are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State(pub SagaState);

/// A step's do, which is round 0, or one of its undos.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepKey {
    /// The step.
    pub step: usize,
    /// 0 for the step itself, else the undo.
    pub round: u32,
}

/// A work row.
#[expect(clippy::struct_excessive_bools, reason = "each is a column of the row")]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Work {
    /// Whether an undo is known to have something to undo.
    pub known: bool,
    /// Raised by each claim.
    pub epoch: u8,
    /// Attempts that were written down.
    pub attempts: u32,
    /// Whether an attempt ended without a definite answer.
    pub in_doubt: bool,
    /// Whether a task has it.
    pub is_leased: bool,
    /// Whether the one that has it has begun.
    pub is_begun: bool,
    /// Whether an owner of it vanished that may have begun.
    pub is_recovered: bool,
    /// Whether an older owner noted its success.
    pub is_late: bool,
    /// How often it was sent, where another service does it.
    pub sent: u8,
}

/// What one process has under way. One process has one thing under way, so that its crash ends just that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Task {
    /// What it does.
    pub key: StepKey,
    /// The epoch that it claimed with.
    pub epoch: u8,
    /// Which attempt this is.
    pub attempt: u32,
    /// Whether an earlier one may have taken effect; of an undo, whether one may not have known of a success.
    pub in_doubt: bool,
    /// Whether it is an undo that knows of the step's success.
    pub informed: bool,
    /// How far it is.
    pub stage: Stage,
    /// Whether it began when its claim was lost: only a mistake does so.
    pub began_stale: bool,
    /// The saga as it was when the task began; kept for a mistake only.
    pub seen: Option<State>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// A call was claimed, and has not begun.
    Waiting,
    /// A transaction is open, or a call has begun, and takes effect at some time.
    Began,
    /// The call has its answer, which is not recorded.
    Answered(Answered),
    /// The effect was committed, the record was not: only a mistake leads here.
    Written,
    /// The claim was lost, and the success is to be brought to the saga.
    Late,
    /// The claim was lost, and it is to be brought to the saga that a call ended without an answer.
    LateUnknown,
}

/// What a call was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answered {
    /// It took effect.
    Done,
    /// It took no effect, and never will.
    Rejected,
    /// Nothing that can be relied on.
    Erred,
}

/// What the outside world knows of a step. It honours keys: the same key takes effect once, and is answered alike.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Outside {
    /// Whether the step's key took effect at some time.
    pub is_used: bool,
    /// Whether the effect stands.
    pub stands: bool,
    /// Whether a call is on its way whose caller has given up.
    pub is_flying: bool,
}

/// Who starts the saga, under one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Client {
    /// With what.
    pub payload: u8,
    /// Whether it was told that this saga is its own.
    pub told: Option<bool>,
}

impl StepKey {
    /// The key of what a command asks for.
    pub fn of(command: Command) -> Self {
        match command {
            Command::Do { step } => Self { step, round: 0 },
            Command::Undo { step, round, .. } => Self { step, round },
        }
    }

    /// The command that a row with this key asks for.
    pub fn command(self, known: bool) -> Command {
        match self.round {
            0 => Command::Do { step: self.step },
            round => Command::Undo { step: self.step, round, known },
        }
    }

    /// Whether it is an undo.
    pub fn is_undo(self) -> bool {
        self.round > 0
    }

    /// The id of the message that asks another service for it.
    pub fn message(self) -> u128 {
        self.step as u128 * 16 + u128::from(self.round) + 1
    }

    /// The step key whose message has this id.
    pub fn of_message(id: u128) -> Self {
        Self { step: ((id - 1) / 16) as usize, round: ((id - 1) % 16) as u32 }
    }
}

impl Work {
    /// A row that was just written.
    pub fn new(known: bool) -> Self {
        Self {
            known,
            epoch: 0,
            attempts: 0,
            in_doubt: false,
            is_leased: false,
            is_begun: false,
            is_recovered: false,
            is_late: false,
            sent: 0,
        }
    }
}

impl Service {
    /// How many effects of a step stand.
    pub fn stands(&self, step: usize) -> i8 {
        let count = |is_undo: bool| -> i8 {
            let of = self.effects.iter().filter(|(key, _)| key.step == step && key.is_undo() == is_undo);
            of.map(|(_, count)| count.cast_signed()).sum()
        };
        count(false) - count(true)
    }

    /// The machine's state, if there is a saga.
    pub fn state(&self) -> Option<&SagaState> {
        self.saga.as_ref().map(|saga| &saga.state.0)
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let state = &self.0;
        (state.phase, &state.steps, state.position, state.messages).hash(hasher);
        state.stuck.as_ref().map(|stuck| (stuck.step, stuck.undo)).hash(hasher);
        state.caller.as_ref().map(|caller| (caller.command, caller.undo)).hash(hasher);
        state.failure.as_ref().map(|failure| (failure.step, failure.kind)).hash(hasher);
    }
}
