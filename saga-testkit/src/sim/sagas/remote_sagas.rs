//! Definitions with steps that other services do, and those services.

use saga_core::Service;
use saga_core::saga::SagaError;
use saga_core::service::ServiceError;

use super::definition::SimDefinition;
use super::naming::SERVICES;
use super::planner::{Planner, named};
use super::remote_steps::RemoteStep;
use super::steps::{Announce, Charge, Confirm, Note, Reserve, Ship};
use crate::sim::world::SimStore;

/// Definitions with steps that other services do.
///
/// # Errors
/// Those of the builder; there are none unless a definition here is wrong.
pub(crate) fn remote_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok([far_plain()?, far_lists()?].concat())
}

fn far_plain() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("far-order")
            .step::<Reserve<0>>()
            .step::<RemoteStep<Charge<1>>>()
            .step::<RemoteStep<Ship<2>>>()
            .step::<Confirm<3>>()
            .build()?,
        named("far-reads")
            .step::<RemoteStep<Reserve<0>>>()
            .after::<RemoteStep<Charge<1>>, RemoteStep<Reserve<0>>>(0)
            .step::<Reserve<2>>()
            .after::<RemoteStep<Ship<3>>, RemoteStep<Charge<1>>>(1)
            .step::<Confirm<4>>()
            .build()?,
        named("far-all")
            .step::<RemoteStep<Reserve<0>>>()
            .step::<RemoteStep<Ship<1>>>()
            .step::<RemoteStep<Reserve<2>>>()
            .build()?,
        named("far-pivot")
            .step::<RemoteStep<Reserve<0>>>()
            .step::<RemoteStep<Confirm<1>>>()
            .pivot()
            .step::<Reserve<2>>()
            .step::<RemoteStep<Announce<3>>>()
            .build()?,
        named("far-fork")
            .step::<Reserve<0>>()
            .parallel(|group| {
                group.branch(Planner::step::<RemoteStep<Charge<1>>>).branch(Planner::step::<RemoteStep<Ship<2>>>)
            })
            .step::<Confirm<3>>()
            .build()?,
        named("far-choose")
            .step::<Reserve<0>>()
            .choose(0, |choice| {
                choice.when(Planner::step::<RemoteStep<Charge<1>>>).when(Planner::step::<RemoteStep<Ship<2>>>)
            })
            .step::<Confirm<3>>()
            .build()?,
        named("far-sub")
            .step::<Reserve<0>>()
            .sub_saga::<RemoteStep<Charge<1>>>(|sub| sub.step::<RemoteStep<Charge<1>>>().step::<Reserve<2>>())?
            .step::<RemoteStep<Ship<3>>>()
            .step::<Confirm<4>>()
            .build()?,
        named("far-sub-last")
            .sub_saga::<Reserve<1>>(|sub| sub.step::<RemoteStep<Charge<0>>>().step::<Reserve<1>>())?
            .step::<RemoteStep<Reserve<2>>>()
            .build()?,
        named("far-end").step::<Charge<0>>().step::<RemoteStep<Note<1>>>().step::<RemoteStep<Reserve<2>>>().build()?,
    ])
}

/// Those with a step of another service that is done for each item of a list.
fn far_lists() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("far-each")
            .step::<Reserve<0>>()
            .for_each::<RemoteStep<Charge<1>>>(3, 2)
            .after_item::<Charge<4>, RemoteStep<Charge<1>>>(1, 1)
            .step::<Confirm<5>>()
            .build()?,
        named("far-each-first")
            .for_each::<RemoteStep<Reserve<0>>>(4, 3)
            .after_item::<Reserve<4>, RemoteStep<Reserve<0>>>(0, 3)
            .build()?,
        named("far-each-last").step::<Charge<0>>().for_each::<RemoteStep<Ship<1>>>(3, 1).build()?,
        named("far-each-note")
            .step::<Charge<0>>()
            .for_each::<RemoteStep<Note<1>>>(3, 2)
            .step::<Reserve<4>>()
            .build()?,
        named("far-each-fork")
            .parallel(|group| {
                group
                    .branch(|branch| branch.for_each::<RemoteStep<Ship<0>>>(2, 2))
                    .branch(|branch| branch.for_each::<RemoteStep<Reserve<2>>>(2, 1).step::<Charge<4>>())
            })
            .step::<Reserve<5>>()
            .build()?,
        named("far-pivot-each")
            .step::<Reserve<0>>()
            .step::<RemoteStep<Confirm<1>>>()
            .pivot()
            .step::<Reserve<2>>()
            .for_each::<RemoteStep<Announce<3>>>(2, 2)
            .step::<Confirm<5>>()
            .build()?,
    ])
}

/// Steps that an external client asks for, each the only one of its saga.
///
/// # Errors
/// Those of the builder; there are none unless a definition here is wrong.
pub(crate) fn external_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("foreign-call").step::<RemoteStep<Charge<0>>>().build()?,
        named("foreign-write").step::<RemoteStep<Reserve<0>>>().build()?,
        named("foreign-ship").step::<RemoteStep<Ship<0>>>().build()?,
        named("foreign-item").for_each::<RemoteStep<Charge<0>>>(1, 1).build()?,
    ])
}

/// A service as it is, and as its last version was, which hosts only some of its steps.
#[derive(Debug, Clone)]
pub(crate) struct SimService {
    pub(crate) now: Service<SimStore>,
    pub(crate) before: Service<SimStore>,
}

/// The services that host steps, in the order of their numbers.
///
/// # Errors
/// Those of the builder; there are none unless a service here is wrong.
pub(crate) fn services() -> Result<Vec<SimService>, ServiceError> {
    let [payments, shipping] = SERVICES;
    let payments_before = || Service::named(payments).host::<Reserve<0>>().host::<Charge<1>>();
    let shipping_before = || Service::named(shipping).host::<Ship<2>>().host::<Confirm<1>>();
    Ok(vec![
        SimService {
            now: payments_before().host::<Charge<0>>().host::<Reserve<2>>().build()?,
            before: payments_before().build()?,
        },
        SimService {
            now: shipping_before()
                .host::<Ship<0>>()
                .host::<Ship<1>>()
                .host::<Ship<3>>()
                .host::<Note<1>>()
                .host::<Announce<3>>()
                .build()?,
            before: shipping_before().build()?,
        },
    ])
}
