//! The kinds of steps as parts of a definition: a function, a wait, a choice, a saga.

use std::sync::Arc;

use super::definition::{Check, LockedOf};
use super::erase::{batch_run, external_run, transaction_run};
use crate::key::StepId;
use crate::machine::{StepShape, UndoShape};
use crate::saga::{Definition, Idle, Mapping, StepDefinition, StepResolve, StepRun, StepUndo, SubSaga};
use crate::step::{Handler, Needs, Run, Step, StepOptions, codec, decode_list};
use crate::store::{Entity, Store};

impl<S: Store> StepDefinition<S> {
    /// The step `T`, whose input is the saga's or what a mapping makes of it.
    pub(crate) fn of<T: Handler<S>>(input: Option<Mapping>, mapped: Vec<&'static str>) -> Self {
        let mut needs = Needs::default();
        T::NEEDS(&mut needs);
        let mut undo_needs = Needs::default();
        if let Some(undo) = T::UNDO {
            undo.needs(&mut undo_needs);
            undo.needs(&mut needs);
        }
        if let Some(resolve) = T::RESOLVE {
            resolve.needs(&mut needs);
        }
        let undo = StepUndo::of::<T>();
        let undo_options = match undo {
            Some(StepUndo::Remote) => Some(T::OPTIONS),
            _ => T::UNDO.map(|undo| undo.options()),
        };
        Self {
            name: T::NAME,
            doing: StepId::doing(T::NAME),
            options: T::OPTIONS,
            run: StepRun::of::<T>(),
            undo: undo.zip(undo_options),
            lock: T::LOCK.map(|_| locked_of::<T> as LockedOf),
            resolve: StepResolve::of::<T>(),
            input,
            mapped,
            needs,
            undo_takes: undo_needs.outputs,
            check_output: |bytes| T::OUTPUT.decode(bytes).map(drop).map_err(|error| error.to_string()),
            check_input: |bytes| T::INPUT.decode(bytes).map(drop).map_err(|error| error.to_string()),
            check_list: None,
        }
    }

    /// The same step, done for each item of a list.
    pub(crate) fn for_each<T: Step>(self) -> Self {
        let check = |bytes: &[u8]| decode_list(T::OUTPUT, bytes).map(drop).map_err(|error| error.to_string());
        Self { check_list: Some(check), ..self }
    }

    /// A step that only waits.
    pub(in crate::saga) fn of_idle(name: &'static str, idle: Idle) -> Self {
        let check_output: Check = |bytes| codec::<()>().decode(bytes).map_err(|error| error.to_string());
        let options = StepOptions::DEFAULT.no_compensation();
        Self { options, ..Self::without_functions(name, StepRun::Idle(idle), check_output) }
    }

    /// A choice, whose arms are set when they are known.
    pub(in crate::saga) fn choice(name: &'static str) -> Self {
        let check_output: Check =
            |bytes| serde_json::from_slice::<Option<String>>(bytes).map(drop).map_err(|error| error.to_string());
        Self::without_functions(name, StepRun::Choice(Arc::new([])), check_output)
    }

    /// A saga as a step.
    pub(in crate::saga) fn child<T: SubSaga>(
        input: Option<Mapping>,
        mapped: Vec<&'static str>,
        child: &Arc<Definition<S>>,
    ) -> Self {
        let run = StepRun::Child(Arc::clone(child));
        let check_output: Check =
            |bytes| <T as Step>::OUTPUT.decode(bytes).map(drop).map_err(|error| error.to_string());
        Self {
            // What only goes forward from somewhere on cannot be taken back whole.
            undo: child.shape.pivot.is_none().then_some((StepUndo::Child, StepOptions::DEFAULT)),
            input,
            mapped,
            check_input: |bytes| <T as Step>::INPUT.decode(bytes).map(drop).map_err(|error| error.to_string()),
            ..Self::without_functions(<T as SubSaga>::NAME, run, check_output)
        }
    }

    /// A step of the engine's own, which is not undone and takes any input.
    fn without_functions(name: &'static str, run: StepRun<S>, check_output: Check) -> Self {
        Self {
            name,
            doing: StepId::doing(name),
            options: StepOptions::DEFAULT,
            run,
            undo: None,
            lock: None,
            resolve: None,
            input: None,
            mapped: Vec::new(),
            needs: Needs::default(),
            undo_takes: Vec::new(),
            check_output,
            check_input: |_| Ok(()),
            check_list: None,
        }
    }

    /// What the machine knows of the step, which is `T`.
    pub(crate) fn shape<T: Step>(&self) -> StepShape {
        let undo = match (&self.undo, T::UNDO) {
            _ if T::OPTIONS.needs_no_compensation => UndoShape::NotNeeded,
            // Whether there is anything to undo is known where the step was done, so it can be asked at any time.
            (Some((StepUndo::Remote, _)), _) => UndoShape::TakesUnknown,
            (_, None) => UndoShape::Missing,
            (_, Some(undo)) if undo.when_unknown() => UndoShape::TakesUnknown,
            (_, Some(_)) => UndoShape::NeedsOutput,
        };
        StepShape { locks_calls: self.lock.is_some(), ..StepShape::new(self.name, self.run.effect(), undo) }
    }
}

fn locked_of<T: Step>(input: &[u8]) -> Result<Vec<Entity>, String> {
    let Some(entities) = T::LOCK else { return Ok(Vec::new()) };
    let input = T::INPUT.decode(input).map_err(|error| format!("its input cannot be read: {error}"))?;
    Ok(entities(&input))
}

impl<S: Store> StepRun<S> {
    fn of<T: Handler<S>>() -> Self {
        match T::handler() {
            Run::Transaction(function) => Self::Transaction(transaction_run::<S, T>(function)),
            Run::Batch(function) => Self::Batch(batch_run::<S, T>(function)),
            Run::External(function) => Self::External(external_run::<T>(function)),
            Run::Remote { service } => Self::Remote { service },
        }
    }
}
