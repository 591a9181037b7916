use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{ServiceError, ServiceProblem};
use crate::key::{InvalidName, check_step_name};
use crate::saga::{Definition, StepDefinition};
use crate::step::{Contract, Handler, Hosted};
use crate::store::Store;

/// The steps that this process does for the sagas of other services, on a store `S`. Cheap to clone.
///
/// ```
/// # use saga_core::{Service, StepError, memory::MemoryStore, saga_compensation, saga_step};
/// # mod contracts {
/// #     use saga_core::{StepError, saga_step};
/// /// Declared in a crate that both sides use.
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
}

/// A service that gets its steps.
pub struct ServiceBuilder<S: Store> {
    name: String,
    steps: BTreeMap<&'static str, Arc<Definition<S>>>,
    problems: Vec<ServiceProblem>,
}

impl<S: Store> Service<S> {
    /// Begins a service. Its name is 1 to 40 bytes of `[a-z0-9-]`, the one that its contracts give as `service = ".."`.
    pub fn named(name: impl Into<String>) -> ServiceBuilder<S> {
        let name = name.into();
        let problem = check_step_name(&name).err().map(|error| ServiceProblem::Name(service_name_problem(&error)));
        ServiceBuilder { name, steps: BTreeMap::new(), problems: problem.into_iter().collect() }
    }

    /// The service's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the steps that it hosts, in alphabetical order.
    pub fn steps(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.steps.keys().copied()
    }

    /// What is run for a command, by the name of its step.
    pub(crate) fn hosted(&self) -> impl Iterator<Item = (&'static str, &Arc<Definition<S>>)> + '_ {
        self.steps.iter().map(|(step, definition)| (*step, definition))
    }
}

impl<S: Store> ServiceBuilder<S> {
    /// Adds a step, by the name of the function with the body.
    #[must_use]
    pub fn host<T: Handler<S> + Hosted>(mut self) -> Self {
        let (step, service) = (T::NAME, <T::Contract as Contract>::SERVICE);
        if service != self.name {
            self.problems.push(ServiceProblem::OtherService { step, service });
        }
        let definition = StepDefinition::of::<T>(None, Vec::new());
        for needed in &definition.needs.outputs {
            self.problems.push(ServiceProblem::NeedsOutput { step, needed: needed.step });
        }
        let shape = definition.shape::<T>();
        let definition = Arc::new(Definition::hosted(&self.name, shape, definition));
        if self.steps.insert(step, definition).is_some() {
            self.problems.push(ServiceProblem::DuplicateStep { step });
        }
        self
    }

    /// Checks the service.
    ///
    /// # Errors
    /// Every problem of it, each with its remedy.
    pub fn build(mut self) -> Result<Service<S>, ServiceError> {
        if self.steps.is_empty() {
            self.problems.push(ServiceProblem::NoSteps);
        }
        if !self.problems.is_empty() {
            return Err(ServiceError::new(&self.name, self.problems));
        }
        Ok(Service { name: self.name.into(), steps: Arc::new(self.steps) })
    }
}

fn service_name_problem(error: &InvalidName) -> String {
    error.to_string().replacen("the step name", "its name", 1)
}

impl<S: Store> Clone for Service<S> {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), steps: Arc::clone(&self.steps) }
    }
}

impl<S: Store> fmt::Debug for Service<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("name", &self.name).field("steps", &self.steps.keys()).finish()
    }
}

impl<S: Store> fmt::Debug for ServiceBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceBuilder")
            .field("name", &self.name)
            .field("steps", &self.steps.keys())
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
