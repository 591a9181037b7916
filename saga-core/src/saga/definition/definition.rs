use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::digest::digest;
use super::emitted_events::EmittedEvents;
use super::erase::{BatchRun, ExternalRun, TransactionRun};
use crate::key::{Key, StepId};
use crate::machine::{self, Effect, SagaState, Shape};
use crate::saga::{Arm, Idle, Mapping, ResultOf, Retention, StepResolve, StepUndo};
use crate::step::{NeededOutput, Needs, StepOptions, StepOutputs};
use crate::store::{DefinitionId, Entity, Expiry, NewDefinition, Status, Store};

/// A saga definition with its types taken off.
pub(crate) struct Definition<S: Store> {
    pub(crate) id: DefinitionId,
    pub(crate) digest: [u8; 32],
    pub(crate) shape: Shape,
    pub(crate) steps: Vec<StepDefinition<S>>,
    /// How many steps can be under way at once: 1 without groups.
    pub(crate) width: usize,
    /// Whether a step of it takes a semantic lock, or one of the sagas that are steps of it.
    pub(crate) takes_locks: bool,
    /// Whether calls of a step of it are made under a lock.
    pub(crate) locks_calls: bool,
    /// What is told of it, where events ask for it.
    pub(crate) told: Option<Box<EmittedEvents>>,
    /// How long a saga has until its pivot, where nothing else is said when it starts.
    pub(crate) deadline: Option<Duration>,
    /// How many of its steps one process runs at a time, at most.
    pub(crate) max_concurrent: Option<usize>,
    /// How long a saga is kept after its end; for ever without it.
    pub(crate) retention: Option<Retention>,
    /// How the result of a saga is made, where it returns one.
    pub(crate) result: Option<ResultOf>,
    /// Whether bytes are an input of a saga.
    pub(crate) check_input: Check,
    /// The state that a saga begins with, encoded and not.
    pub(in crate::saga) fresh: OnceLock<(Vec<u8>, SagaState)>,
}

/// Says what is wrong with bytes.
pub(in crate::saga) type Check = fn(&[u8]) -> Result<(), String>;

/// Names the entities that a step locks, by its stored input.
pub(crate) type LockedOf = fn(&[u8]) -> Result<Vec<Entity>, String>;

/// A step in a saga.
pub(crate) struct StepDefinition<S: Store> {
    pub(crate) name: &'static str,
    /// The id of doing it, of which every command and every record has a copy.
    pub(crate) doing: StepId,
    pub(crate) options: StepOptions,
    pub(crate) run: StepRun<S>,
    pub(crate) undo: Option<(StepUndo<S>, StepOptions)>,
    /// What a call of it or of its compensation locks, by the step's input.
    pub(crate) lock: Option<LockedOf>,
    /// How the other side is asked what became of it.
    pub(crate) resolve: Option<StepResolve>,
    pub(crate) input: Option<Mapping>,
    /// The steps whose outputs the mapping reads.
    pub(crate) mapped: Vec<&'static str>,
    pub(crate) needs: Needs,
    /// The outputs of other steps that its compensation takes.
    pub(crate) undo_takes: Vec<NeededOutput>,
    /// Whether bytes are an output of the step.
    pub(crate) check_output: Check,
    /// Whether bytes are an input of the step.
    pub(crate) check_input: Check,
    /// Whether bytes are the list of what its items gave, where it is done for each of a list.
    pub(crate) check_list: Option<Check>,
}

/// How a step is done.
pub(crate) enum StepRun<S: Store> {
    Transaction(Box<TransactionRun<S::Conn>>),
    Batch(Box<BatchRun<S::Conn>>),
    External(Box<ExternalRun>),
    Remote {
        service: &'static str,
    },
    Choice(Arc<[Arm]>),
    /// A saga of its own.
    Child(Arc<Definition<S>>),
    /// The engine only waits.
    Idle(Idle),
}

impl<S: Store> StepRun<S> {
    /// Where the effect of the step lies.
    pub(crate) fn effect(&self) -> Effect {
        match self {
            Self::Transaction(_) | Self::Batch(_) => Effect::Transactional,
            Self::External(_) => Effect::External,
            Self::Remote { service } => Effect::Remote { service },
            Self::Idle(Idle::Signal(_)) => Effect::Signal,
            Self::Choice(_) | Self::Child(_) | Self::Idle(_) => Effect::Own,
        }
    }
}

impl<S: Store> StepDefinition<S> {
    /// The saga that it is, where it is one.
    pub(crate) fn saga(&self) -> Option<&Arc<Definition<S>>> {
        match &self.run {
            StepRun::Child(child) => Some(child),
            _ => None,
        }
    }

    fn takes_locks(&self) -> bool {
        matches!(self.run, StepRun::Idle(Idle::Lock(_))) || self.saga().is_some_and(|child| child.takes_locks)
    }

    /// Whether the step or its compensation takes the lock of the step, and it has none.
    pub(crate) fn lacks_lock(&self) -> bool {
        self.needs.lock && self.lock.is_none()
    }

    /// After so long no call of the step is on its way any more.
    pub(crate) fn settle_time(&self) -> Duration {
        self.options.timeout.saturating_mul(2)
    }

    /// The same step with other functions, maybe on another store. It has no resolution.
    pub(in crate::saga) fn with_functions<T: Store>(
        &self,
        run: StepRun<T>,
        undo: Option<(StepUndo<T>, StepOptions)>,
    ) -> StepDefinition<T> {
        StepDefinition {
            name: self.name,
            doing: self.doing.clone(),
            options: self.options,
            run,
            undo,
            lock: self.lock,
            resolve: None,
            input: self.input.clone(),
            mapped: self.mapped.clone(),
            needs: self.needs.clone(),
            undo_takes: self.undo_takes.clone(),
            check_output: self.check_output,
            check_input: self.check_input,
            check_list: self.check_list,
        }
    }

    pub(in crate::saga) fn set_arms(&mut self, arms: Vec<Arm>) {
        self.run = StepRun::Choice(arms.into());
    }

    /// The arm of a choice that runs: the first that holds.
    pub(crate) fn choose(&self, input: &[u8], outputs: &StepOutputs) -> Result<Option<usize>, String> {
        let StepRun::Choice(arms) = &self.run else { return Err("it is no choice".to_owned()) };
        for (number, arm) in arms.iter().enumerate() {
            if arm.holds(input, outputs)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Whether the step, its mapping or its compensation takes the output of the step of that name.
    pub(crate) fn takes_output_of(&self, step: &str) -> bool {
        self.mapped.contains(&step) || self.needs.outputs.iter().any(|needed| needed.step == step)
    }
}

impl<S: Store> Definition<S> {
    pub(in crate::saga) fn new(
        name: &str,
        version: u32,
        shape: Shape,
        steps: Vec<StepDefinition<S>>,
        width: usize,
    ) -> Self {
        let digest = digest(&shape);
        let id = DefinitionId { name: Arc::from(name), version };
        let takes_locks = steps.iter().any(StepDefinition::takes_locks);
        let locks_calls = steps.iter().any(|step| step.lock.is_some());
        Self {
            id,
            digest,
            shape,
            steps,
            width,
            takes_locks,
            locks_calls,
            told: None,
            deadline: None,
            max_concurrent: None,
            retention: None,
            result: None,
            check_input: |_| Ok(()),
            fresh: OnceLock::new(),
        }
    }

    /// The same definition with other functions, maybe on another store. It emits no events.
    pub(in crate::saga) fn with_steps<T: Store>(&self, shape: Shape, steps: Vec<StepDefinition<T>>) -> Definition<T> {
        Definition {
            id: self.id.clone(),
            digest: self.digest,
            shape,
            steps,
            width: self.width,
            takes_locks: self.takes_locks,
            locks_calls: self.locks_calls,
            told: None,
            deadline: self.deadline,
            max_concurrent: self.max_concurrent,
            retention: self.retention,
            result: self.result.clone(),
            check_input: self.check_input,
            fresh: OnceLock::new(),
        }
    }

    /// The step, or the one that it is an item of.
    pub(crate) fn step(&self, state: &SagaState, index: usize) -> &StepDefinition<S> {
        &self.steps[state.base(index)]
    }

    /// The id of doing the step or the item.
    pub(crate) fn doing(&self, state: &SagaState, index: usize) -> StepId {
        let step = self.step(state, index);
        state.item_number(index).map_or_else(|| step.doing.clone(), |item| StepId::of_item(step.name, item))
    }

    pub(crate) fn step_id(&self, state: &SagaState, order: machine::Command) -> StepId {
        match order {
            machine::Command::Do { step } => self.doing(state, step),
            machine::Command::Undo { step, round, .. } => self.doing(state, step).undone(round),
        }
    }

    /// Whether a step, its mapping or its compensation, or the result takes the output of the step of that name.
    pub(crate) fn takes_output_of(&self, step: &str) -> bool {
        let is_returned = self.result.as_ref().is_some_and(|result| result.reads.contains(&step));
        is_returned || self.steps.iter().any(|taker| taker.takes_output_of(step))
    }

    /// Where the effect of what a command calls lies.
    pub(crate) fn effect_of(&self, state: &SagaState, order: machine::Command) -> Effect {
        let effect = self.shape.effect(state, order.step());
        match &self.step(state, order.step()).undo {
            _ if !order.is_undo() => effect,
            Some((undo, _)) => undo.effect(effect),
            None => Effect::External,
        }
    }

    /// The key that other services know: for a hosted step, the key of the saga of the coordinator.
    pub(crate) fn coordinator_key(&self, key: &Key) -> Key {
        if self.is_hosted() { key.asked_for() } else { key.clone() }
    }

    /// The state of a saga that was just started. Nearly all of them begin with the same one.
    pub(crate) fn read_fresh(&self, encoded: &[u8]) -> Option<SagaState> {
        let (bytes, state) = self.fresh.get_or_init(|| {
            let (state, _) = machine::start(&self.shape);
            (state.encode(), state)
        });
        if bytes == encoded { Some(state.clone()) } else { SagaState::decode(encoded, self.steps.len()).ok() }
    }

    /// What a store keeps of it.
    pub(crate) fn to_keep(&self) -> NewDefinition {
        // Names and enums always encode.
        let shape = serde_json::to_string(&self.shape).unwrap_or_default();
        NewDefinition { id: self.id.clone(), digest: self.digest, shape }
    }

    /// It and the sagas that are steps of it, with their own.
    pub(crate) fn with_children(this: &Arc<Self>) -> Vec<&Arc<Self>> {
        let mut all = vec![this];
        let mut next = 0;
        while let Some(definition) = all.get(next).copied() {
            all.extend(definition.steps.iter().filter_map(StepDefinition::saga));
            next += 1;
        }
        all.reverse();
        all
    }

    /// How many bytes longer than the saga's key the step keys in it can be, where sagas are steps of it.
    pub(crate) fn step_key_bytes_max(&self) -> Option<usize> {
        let is_outer = self.steps.iter().any(|step| step.saga().is_some());
        is_outer.then(|| self.step_bytes_max())
    }

    fn step_bytes_max(&self) -> usize {
        let of_step = |step: &StepDefinition<S>| {
            let own = StepId::of_item(step.name, u32::MAX).undone(u32::MAX).as_str().len();
            1 + step.saga().map_or(own, |child| own.max(step.name.len() + child.step_bytes_max()))
        };
        self.steps.iter().map(of_step).max().unwrap_or_default()
    }

    /// The services that do steps of it, or of the sagas that are steps of it.
    pub(crate) fn hosts(&self) -> BTreeSet<&'static str> {
        let own = self.shape.steps.iter().filter_map(|step| match step.effect {
            Effect::Remote { service } => Some(service),
            _ => None,
        });
        let children = self.steps.iter().filter_map(StepDefinition::saga);
        own.chain(children.flat_map(|child| child.hosts())).collect()
    }

    /// How long a saga is kept that ended with this status, by its own retention or by this one; none if for ever.
    pub(crate) fn expiry(&self, status: Status, default: Option<Retention>) -> Option<Expiry> {
        let retention = self.retention.or(default)?;
        let hosts = self.hosts().into_iter().map(str::to_owned).collect();
        Some(Expiry { hosts, ..retention.expiry(status) })
    }
}

impl<S: Store> fmt::Debug for Definition<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition").field("id", &self.id).field("shape", &self.shape).finish_non_exhaustive()
    }
}
