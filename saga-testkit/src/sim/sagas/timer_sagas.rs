use saga_core::saga::SagaError;

use super::definition::SimDefinition;
use super::planner::{Planner, named};
use super::steps::{Announce, Charge, Confirm, Note, Reserve, Ship};

/// Those with steps that only wait.
pub(crate) fn timer_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("nap").step::<Reserve<0>>().nap("nap", 900).step::<Charge<1>>().step::<Confirm<2>>().build()?,
        named("naps")
            .nap_with("nap", 40)
            .step::<Charge<0>>()
            .nap("doze", 5_000)
            .nap_with("rest", 0)
            .step::<Reserve<1>>()
            .nap("last", 300)
            .build()?,
        named("wakes").step::<Note<0>>().nap_until("until", 2_500).step::<Reserve<1>>().step::<Charge<2>>().build()?,
        named("nap-in-fork")
            .step::<Reserve<0>>()
            .parallel(|group| {
                group
                    .branch(Planner::step::<Charge<1>>)
                    .branch(|branch| branch.nap("nap", 1_500).step::<Reserve<2>>())
                    .branch(|branch| branch.step::<Ship<3>>().nap("doze", 9_000))
            })
            .step::<Reserve<4>>()
            .build()?,
        named("word").step::<Reserve<0>>().wait(2_000).step::<Charge<1>>().step::<Confirm<2>>().build()?,
        named("first-word").wait_with(400).step::<Charge<0>>().nap("nap", 100).step::<Reserve<1>>().build()?,
        named("word-in-fork")
            .step::<Charge<0>>()
            .parallel(|group| {
                group.branch(Planner::step::<Charge<1>>).branch(|branch| branch.wait(6_000).step::<Reserve<2>>())
            })
            .step::<Reserve<3>>()
            .build()?,
        named("pivot-nap")
            .step::<Charge<0>>()
            .nap("nap", 200)
            .step::<Confirm<1>>()
            .pivot()
            .nap("doze", 1_000)
            .step::<Announce<2>>()
            .build()?,
    ])
}
