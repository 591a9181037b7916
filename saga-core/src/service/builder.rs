//! Services and their builder.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use super::error::{ServiceError, ServiceProblem};
use super::reaction::{Planned, Reaction, Reacts, Wired, put_together};
use crate::key::{InvalidName, check_step_name};
use crate::saga::{Definition, EmittedEvents, StepDefinition, StepHook, looked_at};
use crate::step::{Handler, Hosted};
use crate::store::Store;

/// The steps that this process hosts for the sagas of other services, and its reactions to events, on a store `S`. Cheap to
/// clone.
///
/// ```
/// # use saga_core::{Service, StepError, memory::MemoryStore, saga_compensation, saga_step};
/// # mod contracts {
/// #     use saga_core::{StepError, saga_step};
/// /// The contract, in a crate that both services use.
/// #[saga_step(service = "payments", compensated)]
/// pub async fn charge_card(cents: u64) -> Result<String, StepError>;
/// # }
///
/// #[saga_step(implements = contracts::charge_card, compensate = refund_card)]
/// async fn charge_card(cents: u64) -> Result<String, StepError> {
///     Ok(format!("payment of {cents}"))
/// }
///
/// #[saga_compensation]
/// async fn refund_card(cents: u64, payment: Option<String>) -> Result<(), StepError> {
///     Ok(())
/// }
///
/// let payments: Service<MemoryStore> = Service::named("payments").host::<charge_card>().build()?;
/// assert_eq!(payments.steps().collect::<Vec<_>>(), ["charge-card"]);
/// # Ok::<(), saga_core::service::ServiceError>(())
/// ```
pub struct Service<S: Store> {
    name: Arc<str>,
    steps: Arc<BTreeMap<&'static str, Arc<Definition<S>>>>,
    reactions: Arc<Vec<Reaction<S>>>,
}

/// A service to which steps and reactions are added.
pub struct ServiceBuilder<S: Store> {
    name: String,
    steps: BTreeMap<&'static str, Arc<Definition<S>>>,
    wired: BTreeMap<&'static str, Wired<S>>,
    planned: Vec<Planned>,
    reports_to: Option<String>,
    problems: Vec<ServiceProblem>,
}

impl<S: Store> Service<S> {
    /// Begins a service. Its name is 1 to 40 bytes of `[a-z0-9-]`, as in `service = ".."` of its contracts.
    pub fn named(name: impl Into<String>) -> ServiceBuilder<S> {
        ServiceBuilder::new(name.into())
    }

    /// The service's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the steps that it hosts, in alphabetical order.
    pub fn steps(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.steps.keys().copied()
    }

    /// The reactions to events.
    pub(crate) fn reactions(&self) -> &Arc<Vec<Reaction<S>>> {
        &self.reactions
    }

    /// The definitions of the steps that events start.
    pub(crate) fn choreographed(&self) -> impl Iterator<Item = &Arc<Definition<S>>> + '_ {
        self.reactions.iter().filter_map(|reaction| match &reaction.does {
            Reacts::Run { definition, .. } => Some(definition),
            _ => None,
        })
    }

    /// The same service with a hook around the functions of the steps that it hosts, on another store with the same
    /// connection. It does nothing for events.
    #[doc(hidden)]
    #[must_use]
    pub fn instrumented<T: Store<Conn = S::Conn>>(&self, hook: &Arc<dyn StepHook>) -> Service<T> {
        let hooked = |(step, definition): (&&'static str, &Arc<_>)| (*step, Arc::new(looked_at(definition, hook)));
        let steps = self.steps.iter().map(hooked).collect();
        Service { name: Arc::clone(&self.name), steps: Arc::new(steps), reactions: Arc::default() }
    }

    /// What is run for a command, by the name of its step.
    pub(crate) fn hosted(&self) -> impl Iterator<Item = (&'static str, &Arc<Definition<S>>)> + '_ {
        self.steps.iter().map(|(step, definition)| (*step, definition))
    }
}

impl<S: Store> ServiceBuilder<S> {
    fn new(name: String) -> Self {
        let problem = check_step_name(&name).err().map(|error| ServiceProblem::Name(service_name_problem(&error)));
        Self {
            name,
            steps: BTreeMap::new(),
            wired: BTreeMap::new(),
            planned: Vec::new(),
            reports_to: None,
            problems: problem.into_iter().collect(),
        }
    }

    /// Adds a hosted step: the function that implements the contract.
    #[must_use]
    pub fn host<T: Handler<S> + Hosted>(mut self) -> Self {
        let (step, service) = (T::NAME, T::SERVICE);
        if service != self.name {
            self.problems.push(ServiceProblem::OtherService { step, service });
        }
        let definition = StepDefinition::of::<T>(None, Vec::new());
        for needed in definition.needs.outputs.iter().filter(|needed| !needed.is_lock) {
            self.problems.push(ServiceProblem::NeedsOutput { step, needed: needed.step });
        }
        if definition.lacks_lock() {
            self.problems.push(ServiceProblem::NoLock { step });
        }
        let shape = definition.shape::<T>();
        let definition = Arc::new(Definition::hosted(&self.name, shape, definition));
        if self.steps.insert(step, definition).is_some() {
            self.problems.push(ServiceProblem::DuplicateStep { step });
        }
        self
    }

    /// Reports the outcomes of the steps that events start to this service, which follows the sagas. It may be this service
    /// itself.
    #[must_use]
    pub fn reports_to(mut self, follower: impl Into<String>) -> Self {
        let follower = follower.into();
        if let Err(error) = check_step_name(&follower) {
            let problem = error.to_string().replacen("the step name", "the name of the service that follows it", 1);
            self.problems.push(ServiceProblem::Name(problem));
        }
        self.reports_to = Some(follower);
        self
    }

    /// Adds a step that events start. A step that two events start is one step.
    pub(super) fn wire(&mut self, step: &'static str, wired: Wired<S>) {
        match self.wired.entry(step) {
            Entry::Vacant(entry) => {
                entry.insert(wired);
            }
            Entry::Occupied(entry) if entry.get().is_each != wired.is_each => {
                self.problems.push(ServiceProblem::OnceAndEach { step });
            }
            Entry::Occupied(_) => {}
        }
    }

    pub(super) fn plan(&mut self, planned: Planned) {
        self.planned.push(planned);
    }

    pub(super) fn emit_for(&mut self, step: &'static str, add: impl FnOnce(&mut EmittedEvents)) {
        if let Some(wired) = self.wired.get_mut(step) {
            add(&mut wired.told);
        }
    }

    pub(super) fn report(&mut self, problem: ServiceProblem) {
        self.problems.push(problem);
    }

    /// Checks the service.
    ///
    /// # Errors
    /// All problems of the service, each with its remedy.
    pub fn build(mut self) -> Result<Service<S>, ServiceError> {
        if self.steps.is_empty() && self.planned.is_empty() {
            self.problems.push(ServiceProblem::NoSteps);
        }
        let both = self.wired.keys().filter(|step| self.steps.contains_key(*step));
        let both: Vec<_> = both.map(|step| ServiceProblem::HostedAndRun { step }).collect();
        self.problems.extend(both);
        let reactions =
            put_together(&self.name, self.reports_to.as_deref(), self.wired, self.planned, &mut self.problems);
        if !self.problems.is_empty() {
            return Err(ServiceError::new(&self.name, self.problems));
        }
        Ok(Service { name: self.name.into(), steps: Arc::new(self.steps), reactions: Arc::new(reactions) })
    }
}

fn service_name_problem(error: &InvalidName) -> String {
    error.to_string().replacen("the step name", "its name", 1)
}

impl<S: Store> Clone for Service<S> {
    fn clone(&self) -> Self {
        let (name, steps, reactions) = (&self.name, &self.steps, &self.reactions);
        Self { name: Arc::clone(name), steps: Arc::clone(steps), reactions: Arc::clone(reactions) }
    }
}

impl<S: Store> fmt::Debug for Service<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on: Vec<_> = self.reactions.iter().map(|reaction| (reaction.event, reaction.name())).collect();
        f.debug_struct("Service").field("name", &self.name).field("steps", &self.steps.keys()).field("on", &on).finish()
    }
}

impl<S: Store> fmt::Debug for ServiceBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceBuilder")
            .field("name", &self.name)
            .field("steps", &self.steps.keys())
            .field("wired", &self.wired.keys())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "macros"))]
mod tests {
    use super::*;
    use crate::machine::{Effect, UndoShape};
    use crate::memory::{MemoryConn, MemoryStore};
    use crate::saga::{StepRun, StepUndo};
    use crate::step::StepError;
    use crate::{saga_compensation, saga_step};

    mod contracts {
        use crate::{saga_step, step::StepError};

        #[saga_step(service = "payments", compensated)]
        pub(super) async fn charge_card(cents: u64) -> Result<String, StepError>;
    }

    #[saga_step(implements = contracts::charge_card, compensate = refund_card)]
    async fn charge(cents: u64) -> Result<String, StepError> {
        Ok(cents.to_string())
    }

    #[saga_compensation(timeout = "7s")]
    async fn refund_card(_tx: &mut MemoryConn, _cents: u64, _payment: Option<String>) -> Result<(), StepError> {
        Ok(())
    }

    #[test]
    fn a_step_is_found_under_the_name_of_its_contract() {
        let payments: Service<MemoryStore> =
            Service::named("payments").host::<charge>().build().expect("a service with its own step");
        let [(name, hosted)] = payments.hosted().collect::<Vec<_>>()[..] else { panic!("it hosts one step") };
        let (step, shape) = (&hosted.steps[0], &hosted.shape.steps[0]);
        assert_eq!((name, shape.name, shape.effect), ("charge-card", "charge-card", Effect::External));
        assert_eq!((&*hosted.id.name, shape.undo), ("payments/charge-card", UndoShape::TakesUnknown));
        assert!(matches!(step.run, StepRun::External(_)));
        let (undo, options) = step.undo.as_ref().expect("it is compensated");
        assert!(matches!(undo, StepUndo::Transaction(_)));
        assert_eq!(options.timeout.as_secs(), 7);
        assert!((step.check_output)(b"\"paid\"").is_ok());
        assert!((step.check_output)(b"4").is_err());
    }
}
