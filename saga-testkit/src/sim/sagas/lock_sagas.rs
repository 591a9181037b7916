//! Sagas that lock entities, for their whole time or for single steps.

use saga_core::saga::SagaError;

use super::definition::SimDefinition;
use super::planner::{Planner, named};
use super::steps::{Announce, Charge, Confirm, Debit, Enter, Haul, Reserve, Ship};

/// Those with locks.
pub(crate) fn lock_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("hold").hold::<0>().step::<Charge<0>>().step::<Reserve<1>>().step::<Ship<2>>().build()?,
        named("hold-later").step::<Reserve<0>>().hold::<0>().step::<Reserve<1>>().step::<Charge<2>>().build()?,
        named("hold-all").hold_all().step::<Charge<0>>().step::<Confirm<1>>().build()?,
        named("up").hold::<0>().step::<Charge<0>>().hold::<1>().step::<Reserve<1>>().step::<Ship<2>>().build()?,
        named("down").hold::<1>().step::<Reserve<0>>().hold::<0>().step::<Charge<1>>().build()?,
        named("hold-briefly").step::<Charge<0>>().hold_within::<0>(1_500).step::<Ship<1>>().build()?,
        named("let-go")
            .hold::<0>()
            .step::<Reserve<0>>()
            .step::<Charge<1>>()
            .pivot()
            .release::<0>()
            .step::<Announce<2>>()
            .step::<Confirm<3>>()
            .build()?,
        named("hold-fork")
            .parallel(|group| {
                group
                    .branch(|branch| branch.hold::<0>().step::<Charge<0>>())
                    .branch(|branch| branch.hold::<1>().step::<Reserve<1>>())
            })
            .step::<Ship<2>>()
            .build()?,
        named("debit").step::<Debit<0>>().step::<Enter<1>>().step::<Charge<2>>().build()?,
        named("debits").step::<Debit<0>>().step::<Debit<1>>().step::<Reserve<2>>().build()?,
        named("enter").step::<Reserve<0>>().step::<Enter<1>>().step::<Enter<2>>().step::<Confirm<3>>().build()?,
        named("debit-fork")
            .parallel(|group| group.branch(Planner::step::<Debit<0>>).branch(Planner::step::<Debit<1>>))
            .step::<Haul<2>>()
            .step::<Enter<3>>()
            .build()?,
        named("debit-list").for_each::<Debit<0>>(3, 2).step::<Enter<3>>().step::<Ship<4>>().build()?,
        named("hold-quickly").hold::<0>().step::<Reserve<0>>().step::<Confirm<1>>().build()?,
        named("hold-debit").hold::<1>().step::<Debit<0>>().step::<Debit<1>>().step::<Ship<2>>().build()?,
    ])
}
