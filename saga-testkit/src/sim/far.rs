//! Definitions with steps that other services do, and those services.

use saga_core::Service;

use saga_core::saga::SagaError;
use saga_core::service::ServiceError;

use super::definitions::SimDefinition;
use super::elsewhere::{Elsewhere, SERVICES};
use super::planner::{Planner, named};
use super::steps::{Announce, Charge, Confirm, Note, Reserve, Ship};
use super::store::SimStore;

/// Definitions with steps that other services do.
///
/// # Errors
/// Those of the builder; there are none unless a definition here is wrong.
pub(crate) fn far_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok([far_plain()?, far_lists()?].concat())
}

fn far_plain() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("far-order")
            .step::<Reserve<0>>()
            .step::<Elsewhere<Charge<1>>>()
            .step::<Elsewhere<Ship<2>>>()
            .step::<Confirm<3>>()
            .build()?,
        named("far-reads")
            .step::<Elsewhere<Reserve<0>>>()
            .after::<Elsewhere<Charge<1>>, Elsewhere<Reserve<0>>>(0)
            .step::<Reserve<2>>()
            .after::<Elsewhere<Ship<3>>, Elsewhere<Charge<1>>>(1)
            .step::<Confirm<4>>()
            .build()?,
        named("far-all")
            .step::<Elsewhere<Reserve<0>>>()
            .step::<Elsewhere<Ship<1>>>()
            .step::<Elsewhere<Reserve<2>>>()
            .build()?,
        named("far-pivot")
            .step::<Elsewhere<Reserve<0>>>()
            .step::<Elsewhere<Confirm<1>>>()
            .pivot()
            .step::<Reserve<2>>()
            .step::<Elsewhere<Announce<3>>>()
            .build()?,
        named("far-fork")
            .step::<Reserve<0>>()
            .parallel(|group| {
                group.branch(Planner::step::<Elsewhere<Charge<1>>>).branch(Planner::step::<Elsewhere<Ship<2>>>)
            })
            .step::<Confirm<3>>()
            .build()?,
        named("far-choose")
            .step::<Reserve<0>>()
            .choose(0, |choice| {
                choice.when(Planner::step::<Elsewhere<Charge<1>>>).when(Planner::step::<Elsewhere<Ship<2>>>)
            })
            .step::<Confirm<3>>()
            .build()?,
        named("far-sub")
            .step::<Reserve<0>>()
            .sub_saga::<Elsewhere<Charge<1>>>(|sub| sub.step::<Elsewhere<Charge<1>>>().step::<Reserve<2>>())?
            .step::<Elsewhere<Ship<3>>>()
            .step::<Confirm<4>>()
            .build()?,
        named("far-sub-last")
            .sub_saga::<Reserve<1>>(|sub| sub.step::<Elsewhere<Charge<0>>>().step::<Reserve<1>>())?
            .step::<Elsewhere<Reserve<2>>>()
            .build()?,
        named("far-end").step::<Charge<0>>().step::<Elsewhere<Note<1>>>().step::<Elsewhere<Reserve<2>>>().build()?,
    ])
}

/// Those with a step of another service that is done for each item of a list.
fn far_lists() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("far-each")
            .step::<Reserve<0>>()
            .for_each::<Elsewhere<Charge<1>>>(3, 2)
            .after_item::<Charge<4>, Elsewhere<Charge<1>>>(1, 1)
            .step::<Confirm<5>>()
            .build()?,
        named("far-each-first")
            .for_each::<Elsewhere<Reserve<0>>>(4, 3)
            .after_item::<Reserve<4>, Elsewhere<Reserve<0>>>(0, 3)
            .build()?,
        named("far-each-last").step::<Charge<0>>().for_each::<Elsewhere<Ship<1>>>(3, 1).build()?,
        named("far-each-note").step::<Charge<0>>().for_each::<Elsewhere<Note<1>>>(3, 2).step::<Reserve<4>>().build()?,
        named("far-each-fork")
            .parallel(|group| {
                group
                    .branch(|branch| branch.for_each::<Elsewhere<Ship<0>>>(2, 2))
                    .branch(|branch| branch.for_each::<Elsewhere<Reserve<2>>>(2, 1).step::<Charge<4>>())
            })
            .step::<Reserve<5>>()
            .build()?,
        named("far-pivot-each")
            .step::<Reserve<0>>()
            .step::<Elsewhere<Confirm<1>>>()
            .pivot()
            .step::<Reserve<2>>()
            .for_each::<Elsewhere<Announce<3>>>(2, 2)
            .step::<Confirm<5>>()
            .build()?,
    ])
}

/// Steps that somebody else asks for, each the only one of its saga.
///
/// # Errors
/// Those of the builder; there are none unless a definition here is wrong.
pub(crate) fn foreign_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("foreign-call").step::<Elsewhere<Charge<0>>>().build()?,
        named("foreign-write").step::<Elsewhere<Reserve<0>>>().build()?,
        named("foreign-ship").step::<Elsewhere<Ship<0>>>().build()?,
        named("foreign-item").for_each::<Elsewhere<Charge<0>>>(1, 1).build()?,
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
