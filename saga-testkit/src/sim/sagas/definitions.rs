use saga_core::saga::SagaError;

use super::definition::SimDefinition;
use super::planner::{Planner, named};
use super::steps::{Announce, Charge, Collect, Confirm, Haul, Note, Pay, Reserve, Ship};
use super::timer_sagas::timer_definitions;

/// Every definition of the simulation: transactional and external steps in all orders, with and without a pivot.
///
/// # Errors
/// Those of the builder; there are none unless a definition here is wrong.
pub(crate) fn definitions() -> Result<Vec<SimDefinition>, SagaError> {
    let plain = vec![
        named("order").step::<Reserve<0>>().step::<Charge<1>>().step::<Confirm<2>>().build()?,
        named("long")
            .step::<Reserve<0>>()
            .step::<Reserve<1>>()
            .step::<Charge<2>>()
            .step::<Ship<3>>()
            .step::<Confirm<4>>()
            .build()?,
        named("reads").step::<Charge<0>>().after::<Charge<1>, Charge<0>>(0).step::<Confirm<2>>().build()?,
        named("pivot")
            .step::<Reserve<0>>()
            .step::<Charge<1>>()
            .pivot()
            .step::<Announce<2>>()
            .step::<Confirm<3>>()
            .build()?,
        named("needs").step::<Ship<0>>().after::<Reserve<1>, Ship<0>>(0).step::<Announce<2>>().build()?,
        named("undoable").step::<Note<0>>().step::<Charge<1>>().step::<Reserve<2>>().build()?,
        named("local")
            .step::<Reserve<0>>()
            .step::<Reserve<1>>()
            .after::<Reserve<2>, Reserve<0>>(0)
            .step::<Note<3>>()
            .step::<Confirm<4>>()
            .build()?,
        named("remote")
            .step::<Charge<0>>()
            .step::<Ship<1>>()
            .after::<Charge<2>, Ship<1>>(1)
            .step::<Ship<3>>()
            .build()?,
        named("single").step::<Confirm<0>>().build()?,
        named("one-call").step::<Charge<0>>().build()?,
        named("asked")
            .step::<Reserve<0>>()
            .step::<Pay<1>>()
            .after::<Charge<2>, Pay<1>>(1)
            .step::<Confirm<3>>()
            .build()?,
        named("hauls")
            .step::<Reserve<0>>()
            .step::<Haul<1>>()
            .after::<Charge<2>, Haul<1>>(1)
            .step::<Confirm<3>>()
            .build()?,
        named("haul-fork")
            .parallel(|group| group.branch(Planner::step::<Haul<0>>).branch(Planner::step::<Charge<1>>))
            .step::<Reserve<2>>()
            .build()?,
        named("asked-pivot").step::<Pay<0>>().step::<Pay<1>>().pivot().step::<Announce<2>>().build()?,
        named("asked-fork")
            .parallel(|group| group.branch(Planner::step::<Pay<0>>).branch(Planner::step::<Reserve<1>>))
            .step::<Charge<2>>()
            .build()?,
        named("late-pivot")
            .step::<Reserve<0>>()
            .step::<Confirm<1>>()
            .pivot()
            .step::<Reserve<2>>()
            .after::<Charge<3>, Reserve<2>>(2)
            .step::<Announce<4>>()
            .build()?,
    ];
    let inside =
        [fork_definitions()?, list_definitions()?, choice_definitions()?, timer_definitions()?, sub_definitions()?];
    Ok([plain, inside.concat(), batch_definitions()?.to_vec()].concat())
}

/// Those with groups.
fn fork_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("fork")
            .step::<Reserve<0>>()
            .parallel(|group| group.branch(Planner::step::<Charge<1>>).branch(Planner::step::<Reserve<2>>))
            .step::<Confirm<3>>()
            .build()?,
        named("fork-reads")
            .parallel(|group| {
                group
                    .branch(|branch| branch.step::<Ship<0>>().after::<Reserve<1>, Ship<0>>(0))
                    .branch(Planner::step::<Charge<2>>)
                    .branch(Planner::step::<Reserve<3>>)
            })
            .after::<Charge<4>, Charge<2>>(2)
            .after::<Reserve<5>, Reserve<1>>(1)
            .build()?,
        named("fork-local")
            .parallel(|group| {
                group
                    .branch(|branch| branch.step::<Reserve<0>>().after::<Reserve<1>, Reserve<0>>(0))
                    .branch(|branch| branch.step::<Note<2>>().step::<Reserve<3>>())
            })
            .after::<Reserve<4>, Reserve<3>>(3)
            .step::<Confirm<5>>()
            .build()?,
        named("fork-last")
            .step::<Reserve<0>>()
            .parallel(|group| {
                group
                    .branch(Planner::step::<Charge<1>>)
                    .branch(|branch| branch.step::<Ship<2>>().after::<Reserve<3>, Ship<2>>(2))
            })
            .build()?,
        named("pivot-fork")
            .step::<Reserve<0>>()
            .step::<Confirm<1>>()
            .pivot()
            .parallel(|group| group.branch(Planner::step::<Announce<2>>).branch(Planner::step::<Confirm<3>>))
            .step::<Charge<4>>()
            .build()?,
        named("fork-in-fork")
            .parallel(|group| {
                group
                    .branch(|branch| {
                        branch.step::<Charge<0>>().parallel(|group| {
                            group
                                .branch(Planner::step::<Reserve<1>>)
                                .branch(|branch| branch.after::<Ship<2>, Charge<0>>(0))
                        })
                    })
                    .branch(Planner::step::<Reserve<3>>)
            })
            .after::<Reserve<4>, Ship<2>>(2)
            .build()?,
    ])
}

/// Those with steps that are done for each item of a list.
fn list_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("each")
            .step::<Reserve<0>>()
            .for_each::<Charge<1>>(3, 2)
            .after_item::<Charge<4>, Charge<1>>(1, 1)
            .step::<Confirm<5>>()
            .build()?,
        named("each-local").for_each::<Reserve<0>>(4, 3).after_item::<Reserve<4>, Reserve<0>>(0, 3).build()?,
        named("each-alone").for_each::<Ship<0>>(3, 1).step::<Reserve<3>>().build()?,
        named("each-none").step::<Charge<0>>().for_each::<Reserve<1>>(0, 2).step::<Confirm<1>>().build()?,
        named("each-last").step::<Reserve<0>>().for_each::<Ship<1>>(2, 2).build()?,
        named("each-in-fork")
            .parallel(|group| {
                group
                    .branch(|branch| branch.for_each::<Reserve<0>>(2, 2).step::<Charge<2>>())
                    .branch(|branch| branch.for_each::<Charge<3>>(2, 1))
            })
            .step::<Reserve<5>>()
            .build()?,
        named("pivot-each")
            .step::<Reserve<0>>()
            .step::<Confirm<1>>()
            .pivot()
            .for_each::<Announce<2>>(3, 2)
            .step::<Confirm<5>>()
            .build()?,
        named("each-batch").for_each::<Collect<0>>(3, 2).for_each::<Collect<3>>(2, 2).build()?,
    ])
}

/// Those with choices. A condition holds or not as chance has it, each time it is asked.
fn choice_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("choose")
            .step::<Reserve<0>>()
            .choose(0, |choice| choice.when(Planner::step::<Charge<1>>).when(Planner::step::<Reserve<2>>))
            .after_if_taken::<Reserve<3>, Reserve<2>>(2)
            .step::<Confirm<4>>()
            .build()?,
        named("choose-local")
            .step::<Reserve<0>>()
            .choose(0, |choice| {
                choice
                    .when_after::<Reserve<0>>(|arm| arm.step::<Reserve<1>>().after::<Reserve<2>, Reserve<1>>(1))
                    .otherwise(Planner::step::<Note<3>>)
            })
            .step::<Reserve<4>>()
            .build()?,
        named("choose-first")
            .choose(0, |choice| choice.when(Planner::step::<Ship<0>>).otherwise(Planner::step::<Reserve<1>>))
            .choose(1, |choice| choice.when(Planner::step::<Charge<2>>))
            .step::<Confirm<3>>()
            .build()?,
        named("choose-last")
            .step::<Reserve<0>>()
            .choose(0, |choice| choice.when(Planner::step::<Charge<1>>).when(Planner::step::<Reserve<2>>))
            .build()?,
        named("choose-in-fork")
            .parallel(|group| {
                group
                    .branch(|branch| {
                        let branch = branch.choose(0, |choice| {
                            choice.when(Planner::step::<Charge<0>>).otherwise(Planner::step::<Reserve<1>>)
                        });
                        branch.step::<Reserve<2>>()
                    })
                    .branch(Planner::step::<Reserve<3>>)
            })
            .after_if_taken::<Reserve<4>, Charge<0>>(0)
            .build()?,
        named("choose-deep")
            .choose(0, |choice| {
                choice.when(Planner::step::<Charge<0>>).otherwise(|arm| {
                    arm.step::<Reserve<1>>().choose(1, |choice| {
                        choice.when(|arm| {
                            arm.parallel(|group| {
                                group.branch(Planner::step::<Reserve<2>>).branch(Planner::step::<Charge<3>>)
                            })
                        })
                    })
                })
            })
            .step::<Reserve<4>>()
            .build()?,
        named("choose-each")
            .choose(0, |choice| choice.when(|arm| arm.for_each::<Reserve<0>>(2, 2)))
            .step::<Reserve<2>>()
            .step::<Confirm<3>>()
            .build()?,
        named("pivot-choose")
            .step::<Reserve<0>>()
            .step::<Confirm<1>>()
            .pivot()
            .choose(0, |choice| choice.when(Planner::step::<Announce<2>>).otherwise(Planner::step::<Confirm<3>>))
            .step::<Charge<4>>()
            .build()?,
    ])
}

/// Those with a saga as a step.
fn sub_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("sub")
            .step::<Reserve<0>>()
            .sub_saga::<Reserve<2>>(|sub| sub.step::<Charge<1>>().step::<Reserve<2>>())?
            .after_sub::<Reserve<3>, Reserve<2>>(2)
            .step::<Confirm<4>>()
            .build()?,
        named("sub-first")
            .sub_saga::<Ship<0>>(|sub| sub.step::<Ship<0>>().after::<Reserve<1>, Ship<0>>(0))?
            .step::<Charge<2>>()
            .step::<Confirm<3>>()
            .build()?,
        named("sub-last")
            .step::<Reserve<0>>()
            .sub_saga::<Charge<1>>(|sub| sub.step::<Charge<1>>().step::<Reserve<2>>())?
            .build()?,
        named("sub-pivot")
            .step::<Reserve<0>>()
            .sub_saga::<Charge<1>>(|sub| sub.step::<Charge<1>>().step::<Confirm<2>>())?
            .build()?,
    ])
}

fn batch_definitions() -> Result<[SimDefinition; BATCH_DEFINITIONS], SagaError> {
    Ok([
        named("batch").step::<Collect<0>>().step::<Collect<1>>().step::<Confirm<2>>().build()?,
        named("batches")
            .step::<Collect<0>>()
            .step::<Reserve<1>>()
            .after::<Collect<2>, Collect<0>>(0)
            .step::<Charge<3>>()
            .step::<Collect<4>>()
            .build()?,
    ])
}

/// How many of them, the last ones, have batch steps.
pub(crate) const BATCH_DEFINITIONS: usize = 2;
