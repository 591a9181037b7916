//! The same saga with a player in place of its functions: the replay of stored sagas uses it.

use std::sync::Arc;

use super::{Definition, Saga, StepDefinition, StepRun, StepUndo, Unfinished};
use crate::env::BoxFuture;
use crate::machine::{Effect, Shape};
use crate::step::{Args, Needs, StepError};
use crate::store::Store;

/// Answers for the functions of a saga, which are not called. A step of a sub-saga is `sub-saga>step`, by the name of the
/// step that the sub-saga is.
pub trait Player: Send + Sync + 'static {
    /// What the step, or the item `step#n`, returns, encoded.
    fn does(&self, step: &str) -> BoxFuture<'static, Result<Vec<u8>, StepError>>;

    /// The signal that a step of that name waits for, in whichever saga, encoded; nothing where none arrives in time.
    fn receives(&self, step: &str) -> Option<Vec<u8>>;

    /// Whether its compensation succeeds.
    fn undoes(&self, step: &str) -> BoxFuture<'static, Result<(), StepError>>;
}

impl<S: Store, I, R> Saga<S, I, R> {
    /// The same definition, name and digest included, on another store, with a player that answers for its functions.
    /// Inputs and answers are decoded as the types of the functions. Steps of other services are played as external steps,
    /// and sub-sagas as sagas. No time passes: a sleep ends at once, a signal that is not there at once counts as not
    /// received, and there is no deadline.
    #[doc(hidden)]
    pub fn played<T: Store>(&self, player: &Arc<dyn Player>) -> Saga<T, I, R> {
        Saga::of(Arc::new(played(self.definition(), player, SubSagas::AsSagas)))
    }

    /// The same, with its sub-sagas played as external steps.
    #[doc(hidden)]
    pub fn played_alone<T: Store>(&self, player: &Arc<dyn Player>) -> Saga<T, I, R> {
        Saga::of(Arc::new(played(self.definition(), player, SubSagas::AsSteps)))
    }

    /// Its sub-sagas, by the names of the steps that they are.
    #[doc(hidden)]
    pub fn sub_sagas(&self) -> Vec<(&'static str, Saga<S, ()>)> {
        let child = |step: &StepDefinition<S>| match &step.run {
            StepRun::Child(child) => Some((step.name, Arc::clone(child))),
            _ => None,
        };
        let children = self.definition().steps.iter().filter_map(child);
        children.map(|(name, definition)| (name, Saga::of(definition))).collect()
    }

    /// The same definition, whatever it is started with.
    #[doc(hidden)]
    pub fn without_input(&self) -> Saga<S, ()> {
        Saga::of(Arc::clone(self.definition()))
    }

    /// The digest of the definition.
    #[doc(hidden)]
    pub fn digest(&self) -> [u8; 32] {
        self.definition().digest
    }

    /// The shape of the definition, as a store keeps it.
    #[doc(hidden)]
    pub fn shape(&self) -> String {
        self.definition().to_keep().shape
    }

    /// Whether bytes are an output of the step of that name.
    ///
    /// # Errors
    /// Why they are not.
    #[doc(hidden)]
    pub fn check_output(&self, step: &str, output: &[u8]) -> Result<(), String> {
        let definition = self.definition();
        let place = definition.shape.position(step).ok_or_else(|| format!("{} has no step `{step}`", definition.id))?;
        (definition.steps[place].check_output)(output)
    }
}

/// As what a sub-saga is played.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SubSagas {
    AsSagas,
    AsSteps,
}

fn played<S: Store, T: Store>(
    original: &Arc<Definition<S>>,
    player: &Arc<dyn Player>,
    sub_sagas: SubSagas,
) -> Definition<T> {
    let mut shape: Shape = original.shape.clone();
    for step in &mut shape.steps {
        if step.child.is_some() && sub_sagas == SubSagas::AsSteps {
            (step.effect, step.child) = (Effect::External, None);
        } else if matches!(step.effect, Effect::Remote { .. }) {
            step.effect = Effect::External;
        }
    }
    let steps = (0..original.steps.len()).map(|index| played_step(original, index, player, sub_sagas)).collect();
    Definition { deadline: None, ..original.with_steps(shape, steps) }
}

fn played_step<S: Store, T: Store>(
    original: &Arc<Definition<S>>,
    index: usize,
    player: &Arc<dyn Player>,
    sub_sagas: SubSagas,
) -> StepDefinition<T> {
    let step = &original.steps[index];
    let is_transactional = step.run.effect() == Effect::Transactional;
    let undo = step.undo.as_ref().map(|(undo, options)| {
        let undo = match undo {
            StepUndo::Child if sub_sagas == SubSagas::AsSagas => StepUndo::Child,
            StepUndo::Transaction(_) => played_undo(original, index, player, true),
            _ => played_undo(original, index, player, false),
        };
        (undo, *options)
    });
    let run = match &step.run {
        StepRun::Child(child) if sub_sagas == SubSagas::AsSagas => {
            StepRun::Child(Arc::new(played(child, player, sub_sagas)))
        }
        _ => played_run(original, index, player, is_transactional),
    };
    // The application's values are for the functions, which are not called.
    let needs = Needs { states: Vec::new(), ..step.needs.clone() };
    StepDefinition { needs, ..step.with_functions(run, undo) }
}

/// The step, or its item, that is called; of a sub-saga with the step that this is in front.
fn called(args: Args<'_>) -> String {
    let (saga, step) = args.ctx.original_key().rsplit_once(':').unwrap_or_default();
    match saga.split_once('>') {
        None => step.to_owned(),
        Some((_, sub_saga)) => format!("{sub_saga}>{step}"),
    }
}

fn stuck(what: &str, problem: &str) -> StepError {
    StepError::unreadable(format!("{what} does not decode: {problem}"))
}

fn played_run<S: Store, T: Store>(
    original: &Arc<Definition<S>>,
    index: usize,
    player: &Arc<dyn Player>,
    is_transactional: bool,
) -> StepRun<T> {
    // What the engine does itself is no function.
    match &original.steps[index].run {
        StepRun::Choice(arms) => return StepRun::Choice(Arc::clone(arms)),
        StepRun::Idle(idle) => return StepRun::Idle(idle.played(player.receives(original.steps[index].name))),
        _ => {}
    }
    let (definition, player) = (Arc::clone(original), Arc::clone(player));
    let run = move |args: Args<'_>, input: &[u8]| -> BoxFuture<'static, Result<Vec<u8>, Unfinished>> {
        let step = &definition.steps[index];
        let given = (step.check_input)(input).map_err(|problem| stuck("its stored input", &problem));
        let (check_output, answer) = (step.check_output, player.does(&called(args)));
        Box::pin(async move {
            given?;
            let output = answer.await?;
            check_output(&output).map_err(|problem| stuck("what it returned", &problem))?;
            Ok(output)
        })
    };
    if is_transactional {
        StepRun::Transaction(Box::new(move |_, args, input| run(args, input)))
    } else {
        StepRun::External(Box::new(move |args, input| run(args, input)))
    }
}

fn played_undo<S: Store, T: Store>(
    original: &Arc<Definition<S>>,
    index: usize,
    player: &Arc<dyn Player>,
    is_transactional: bool,
) -> StepUndo<T> {
    let (definition, player) = (Arc::clone(original), Arc::clone(player));
    let undo =
        move |args: Args<'_>, input: &[u8], output: Option<&[u8]>| -> BoxFuture<'static, Result<(), StepError>> {
            let step = &definition.steps[index];
            let given = (step.check_input)(input).map_err(|problem| stuck("its stored input", &problem));
            let returned = output.map_or(Ok(()), step.check_output);
            let answer = player.undoes(&called(args));
            Box::pin(async move {
                given?;
                returned.map_err(|problem| stuck("its stored output", &problem))?;
                answer.await
            })
        };
    if is_transactional {
        StepUndo::Transaction(Box::new(move |_, args, input, output| undo(args, input, output)))
    } else {
        StepUndo::External(Box::new(move |args, input, output| undo(args, input, output)))
    }
}
