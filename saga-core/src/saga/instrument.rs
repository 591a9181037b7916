//! The same saga with a hook around each function: crash exploration and fault injection use it.

use std::sync::Arc;

use super::definition::digest::digest;
use super::{Arm, Definition, Migration, Saga, StepDefinition, StepRun, StepUndo};
use crate::env::BoxFuture;
use crate::machine::{Shape, Side, StepShape, UndoShape};
use crate::step::StepError;
use crate::store::Store;

/// Is asked before and behind each function of a saga. An error is what the function returns instead; in front of it,
/// the function is not called.
pub trait StepHook: Send + Sync + 'static {
    /// The function of this step, or of its compensation, is about to be called.
    fn before(&self, step: &'static str, undo: bool) -> BoxFuture<'static, Result<(), StepError>>;

    /// The function returned a success. In a transaction nothing of it is committed yet.
    fn behind(&self, step: &'static str, undo: bool) -> BoxFuture<'static, Result<(), StepError>>;
}

/// Looks on, and does nothing.
struct Idle;

impl StepHook for Idle {
    fn before(&self, _step: &'static str, _undo: bool) -> BoxFuture<'static, Result<(), StepError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn behind(&self, _step: &'static str, _undo: bool) -> BoxFuture<'static, Result<(), StepError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl<S: Store, I, R> Saga<S, I, R> {
    /// The names of all steps, in their order.
    #[doc(hidden)]
    pub fn names(&self) -> Vec<&'static str> {
        self.definition().steps.iter().map(|step| step.name).collect()
    }

    /// The names of the steps whose effect is undone, or stands for good: those from the pivot on, and those before it that
    /// have a compensation.
    #[doc(hidden)]
    pub fn names_with_effects(&self) -> Vec<&'static str> {
        let shape = &self.definition().shape;
        let has_effect = |(index, step): &(usize, &StepShape)| {
            let counts = step.undo != UndoShape::NotNeeded || shape.side(*index) != Side::Before;
            counts && !step.is_choice()
        };
        shape.steps.iter().enumerate().filter(has_effect).map(|(_, step)| step.name).collect()
    }

    /// The names of the steps that have a function, in their order.
    #[doc(hidden)]
    pub fn step_names(&self) -> Vec<&'static str> {
        let steps = self
            .definition()
            .steps
            .iter()
            .filter(|step| !matches!(step.run, StepRun::Choice(_) | StepRun::Child(_) | StepRun::Idle(_)));
        steps.map(|step| step.name).collect()
    }

    /// The names of those that stand in an arm of a choice.
    #[doc(hidden)]
    pub fn names_in_arms(&self) -> Vec<&'static str> {
        let in_arms = self.definition().shape.steps.iter().filter(|step| step.within.is_some() && !step.is_choice());
        in_arms.map(|step| step.name).collect()
    }

    /// Whether steps of it can be under way at once.
    #[doc(hidden)]
    pub fn has_branches(&self) -> bool {
        self.definition().width > 1
    }

    /// The names of the batch steps, in their order.
    #[doc(hidden)]
    pub fn batch_step_names(&self) -> Vec<&'static str> {
        let steps = self.definition().steps.iter().filter(|step| matches!(step.run, StepRun::Batch(_)));
        steps.map(|step| step.name).collect()
    }

    /// The names of the steps whose function runs in a transaction, and, with `true`, of those whose undo does.
    #[doc(hidden)]
    pub fn names_in_transactions(&self) -> Vec<(&'static str, bool)> {
        let in_transactions = self.definition().steps.iter().flat_map(|step| {
            let is_done_so = matches!(step.run, StepRun::Transaction(_) | StepRun::Batch(_));
            let is_undone_so = matches!(step.undo, Some((StepUndo::Transaction(_), _)));
            [is_done_so.then_some((step.name, false)), is_undone_so.then_some((step.name, true))]
        });
        in_transactions.flatten().collect()
    }

    /// The same definition, name and digest included, for a store with the same connection, with a hook around each
    /// function.
    #[doc(hidden)]
    pub fn instrumented<T: Store<Conn = S::Conn>>(&self, hook: &Arc<dyn StepHook>) -> Saga<T, I, R> {
        let definition = looked_at(self.definition(), hook);
        Saga::of(Arc::new(definition))
    }

    /// The same steps as another version.
    #[doc(hidden)]
    #[must_use]
    pub fn as_version(&self, version: u32) -> Self {
        let hook: Arc<dyn StepHook> = Arc::new(Idle);
        let mut definition = looked_at(self.definition(), &hook);
        definition.id.version = version;
        Self::of(Arc::new(definition))
    }

    /// The same steps, with the arms of each choice in another order. The last one, which runs where no other does, stays so.
    #[doc(hidden)]
    #[must_use]
    pub fn with_arms_turned(&self) -> Self {
        let hook: Arc<dyn StepHook> = Arc::new(Idle);
        let mut definition = looked_at(self.definition(), &hook);
        for choice in 0..definition.steps.len() {
            let StepRun::Choice(arms) = &definition.steps[choice].run else { continue };
            let turned = arms.iter().filter(|arm| arm.holds.is_some()).count();
            let place = |arm: usize| if arm < turned { turned - 1 - arm } else { arm };
            let arms: Vec<Arm> = (0..arms.len()).map(|arm| arms[place(arm)].clone()).collect();
            definition.shape.steps[choice].arms = arms.iter().map(|arm| arm.name).collect();
            definition.steps[choice].set_arms(arms);
            let within = definition.shape.steps.iter_mut().filter_map(|step| step.within.as_mut());
            within.filter(|within| within.choice == choice).for_each(|within| within.arm = place(within.arm));
        }
        definition.digest = digest(&definition.shape);
        Self::of(Arc::new(definition))
    }

    /// The same definition, name and digest included, with another shape: an engine that runs it is mistaken about the order
    /// of its steps, or about what undoes them.
    #[doc(hidden)]
    #[must_use]
    pub fn misjudged(&self, change: impl FnOnce(&mut Shape)) -> Self {
        let hook: Arc<dyn StepHook> = Arc::new(Idle);
        let mut definition = looked_at(self.definition(), &hook);
        change(&mut definition.shape);
        definition.width = definition.width.max(definition.steps.len());
        Self::of(Arc::new(definition))
    }
}

impl<S: Store> Migration<S> {
    /// The old version and the new one, without the types of their inputs.
    #[doc(hidden)]
    pub fn sagas(&self) -> (Saga<S, ()>, Saga<S, ()>) {
        let saga = |definition: &Arc<Definition<S>>| Saga::of(Arc::clone(definition));
        (saga(&self.plan.from), saga(&self.plan.to))
    }

    /// The same migration between the versions as [`Saga::instrumented`] has them.
    #[doc(hidden)]
    #[must_use]
    pub fn instrumented<T: Store<Conn = S::Conn>>(&self, hook: &Arc<dyn StepHook>) -> Migration<T> {
        let (from, to) = (looked_at(&self.plan.from, hook), looked_at(&self.plan.to, hook));
        let plan = self.plan.between(Arc::new(from), Arc::new(to));
        Migration { plan: Arc::new(plan) }
    }
}

/// The same definition with a hook around its functions.
pub(crate) fn looked_at<S: Store, T: Store<Conn = S::Conn>>(
    original: &Arc<Definition<S>>,
    hook: &Arc<dyn StepHook>,
) -> Definition<T> {
    let steps = (0..original.steps.len()).map(|index| wrapped(original, index, hook)).collect();
    original.with_steps(original.shape.clone(), steps)
}

fn wrapped<S: Store, T: Store<Conn = S::Conn>>(
    original: &Arc<Definition<S>>,
    index: usize,
    hook: &Arc<dyn StepHook>,
) -> StepDefinition<T> {
    let step = &original.steps[index];
    let undo = step.undo.as_ref().and_then(|(_, options)| Some((wrapped_undo(original, index, hook)?, *options)));
    let wrapped = step.with_functions(wrapped_run(original, index, hook), undo);
    // A resolution has no effect that could be made to fail.
    StepDefinition { resolve: step.resolve.clone(), ..wrapped }
}

fn wrapped_run<S: Store, T: Store<Conn = S::Conn>>(
    original: &Arc<Definition<S>>,
    index: usize,
    hook: &Arc<dyn StepHook>,
) -> StepRun<T> {
    let (definition, hook, name) = (Arc::clone(original), Arc::clone(hook), original.steps[index].name);
    match &original.steps[index].run {
        StepRun::Transaction(_) => StepRun::Transaction(Box::new(move |conn, args, input| {
            let (definition, hook) = (Arc::clone(&definition), Arc::clone(&hook));
            Box::pin(async move {
                hook.before(name, false).await?;
                let StepRun::Transaction(run) = &definition.steps[index].run else { return Err(another_kind().into()) };
                let output = run(conn, args, input).await?;
                hook.behind(name, false).await?;
                Ok(output)
            })
        })),
        StepRun::Batch(_) => StepRun::Batch(Box::new(move |conn, args, inputs| {
            let (definition, hook) = (Arc::clone(&definition), Arc::clone(&hook));
            Box::pin(async move {
                hook.before(name, false).await?;
                let StepRun::Batch(run) = &definition.steps[index].run else { return Err(another_kind().into()) };
                let answers = run(conn, args, inputs).await?;
                hook.behind(name, false).await?;
                Ok(answers)
            })
        })),
        StepRun::External(_) => StepRun::External(Box::new(move |args, input| {
            let (definition, hook) = (Arc::clone(&definition), Arc::clone(&hook));
            Box::pin(async move {
                hook.before(name, false).await?;
                let StepRun::External(run) = &definition.steps[index].run else { return Err(another_kind().into()) };
                let output = run(args, input).await?;
                hook.behind(name, false).await?;
                Ok(output)
            })
        })),
        // It is another service's function.
        StepRun::Remote { service } => StepRun::Remote { service },
        StepRun::Choice(arms) => StepRun::Choice(Arc::clone(arms)),
        StepRun::Child(child) => StepRun::Child(Arc::new(looked_at(child, &hook))),
        // There is no function.
        StepRun::Idle(idle) => StepRun::Idle(idle.clone()),
    }
}

fn wrapped_undo<S: Store, T: Store<Conn = S::Conn>>(
    original: &Arc<Definition<S>>,
    index: usize,
    hook: &Arc<dyn StepHook>,
) -> Option<StepUndo<T>> {
    let (definition, hook, name) = (Arc::clone(original), Arc::clone(hook), original.steps[index].name);
    Some(match &original.steps[index].undo.as_ref()?.0 {
        StepUndo::Transaction(_) => StepUndo::Transaction(Box::new(move |conn, args, input, output| {
            let (definition, hook) = (Arc::clone(&definition), Arc::clone(&hook));
            Box::pin(async move {
                hook.before(name, true).await?;
                let Some((StepUndo::Transaction(undo), _)) = &definition.steps[index].undo else {
                    return Err(another_kind());
                };
                undo(conn, args, input, output).await?;
                hook.behind(name, true).await
            })
        })),
        StepUndo::External(_) => StepUndo::External(Box::new(move |args, input, output| {
            let (definition, hook) = (Arc::clone(&definition), Arc::clone(&hook));
            Box::pin(async move {
                hook.before(name, true).await?;
                let Some((StepUndo::External(undo), _)) = &definition.steps[index].undo else {
                    return Err(another_kind());
                };
                undo(args, input, output).await?;
                hook.behind(name, true).await
            })
        })),
        StepUndo::Remote => StepUndo::Remote,
        StepUndo::Child => StepUndo::Child,
    })
}

/// A definition never changes, so this is never returned.
fn another_kind() -> StepError {
    StepError::unreadable("its kind has changed")
}
