//! Steps that another service hosts: what a saga, a service and a runtime say about them before anything runs.

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::service::{ServiceBuilder, ServiceProblem};
use saga_core::{Output, Runtime, Saga, Service, StepError, saga_compensation, saga_step};

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", compensated)]
    pub async fn charge_card(cents: u64) -> Result<String, StepError>;

    #[saga_step(service = "payments")]
    pub async fn close(cents: u64) -> Result<u64, StepError>;

    #[saga_step(service = "shipping", no_compensation)]
    pub async fn label(cents: u64) -> Result<u64, StepError>;
}

#[saga_step(implements = contracts::charge_card, compensate = refund_card)]
async fn charge_card(cents: u64) -> Result<String, StepError> {
    Ok(cents.to_string())
}

#[saga_compensation]
async fn refund_card(_tx: &mut MemoryConn, _cents: u64) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(implements = contracts::charge_card, compensate = refund_and_tell)]
async fn charge_twice(cents: u64) -> Result<String, StepError> {
    Ok(cents.to_string())
}

#[saga_compensation]
async fn refund_and_tell(_cents: u64, _closed: Output<contracts::close>) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(implements = contracts::label)]
async fn label(cents: u64) -> Result<u64, StepError> {
    Ok(cents)
}

fn problems(service: ServiceBuilder<MemoryStore>) -> Vec<ServiceProblem> {
    service.build().map_or_else(|error| error.problems, |service| panic!("{service:?} was built"))
}

fn payments() -> ServiceBuilder<MemoryStore> {
    Service::named("payments")
}

#[test]
fn a_service_hosts_steps_of_its_own_contracts_once_each() {
    assert_eq!(problems(payments()), [ServiceProblem::NoSteps]);
    assert_eq!(
        problems(payments().host::<charge_card>().host::<charge_card>()),
        [ServiceProblem::DuplicateStep { step: "charge-card" }]
    );
    assert_eq!(
        problems(payments().host::<label>()),
        [ServiceProblem::OtherService { step: "label", service: "shipping" }]
    );
    assert_eq!(
        problems(payments().host::<charge_twice>()),
        [ServiceProblem::NeedsOutput { step: "charge-card", needed: "close" }]
    );
}

#[test]
fn all_problems_of_a_service_are_said_at_once() {
    let error = Service::<MemoryStore>::named("Payments").host::<charge_card>().build().expect_err("a bad name");
    let text = error.to_string();
    assert!(
        text.starts_with("the service `Payments` cannot be built: its name \"Payments\" has a character"),
        "{text}"
    );
    assert!(text.contains("; `charge-card` is declared for the service `payments`"), "{text}");
}

#[test]
fn a_step_of_another_service_may_have_to_be_undone_as_any_other() {
    let saga = |name: &str| Saga::<MemoryStore, ()>::named(name).input::<u64>();
    let compensated = saga("a").step::<contracts::charge_card>().step::<contracts::label>().build();
    assert!(compensated.is_ok(), "{compensated:?}");
    let error = saga("b").step::<contracts::close>().step::<contracts::label>().build().expect_err("no compensation");
    assert!(error.to_string().contains("`close` may have to be undone, but has no compensation"), "{error}");
    assert!(error.to_string().contains("`compensated`"), "{error}");
}

#[tokio::test]
async fn a_runtime_that_cannot_reach_the_service_does_not_start() {
    let saga = Saga::named("order").input::<u64>().step::<contracts::charge_card>().build().expect("a valid saga");
    let error = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.expect_err("nothing carries commands");
    assert!(
        error.to_string().contains("the step `charge-card` of order version 1 is hosted by the service `payments`"),
        "{error}"
    );
}
