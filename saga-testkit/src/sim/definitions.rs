use std::time::{Duration, SystemTime};

use saga_core::memory::MemoryStore;
use saga_core::saga::{Branch, Group, SagaBuilder, SagaError};
use saga_core::service::ServiceError;
use saga_core::{Each, Saga, Service};

use super::elsewhere::{Elsewhere, SERVICES};
use super::finals::ORIGIN_MICROS;
use super::steps::{Announce, Charge, Collect, Confirm, Haul, Note, Pay, Planned, Reserve, Ship, SimInput, SimOutput};
use super::words::Word;
use crate::checker::{Pause, StepPlan, Variant};

/// A saga definition, and what the checker knows of it.
#[derive(Debug, Clone)]
pub(crate) struct SimDefinition {
    pub(crate) saga: Saga<MemoryStore, SimInput>,
    pub(crate) variant: Variant,
}

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
            .parallel(|group| group.branch(PlannedBranch::step::<Haul<0>>).branch(PlannedBranch::step::<Charge<1>>))
            .step::<Reserve<2>>()
            .build()?,
        named("asked-pivot").step::<Pay<0>>().step::<Pay<1>>().pivot().step::<Announce<2>>().build()?,
        named("asked-fork")
            .parallel(|group| group.branch(PlannedBranch::step::<Pay<0>>).branch(PlannedBranch::step::<Reserve<1>>))
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
    let others = [fork_definitions()?, list_definitions()?, pause_definitions()?, batch_definitions()?.to_vec()];
    Ok([plain, others.concat()].concat())
}

/// Those with groups.
fn fork_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("fork")
            .step::<Reserve<0>>()
            .parallel(|group| group.branch(PlannedBranch::step::<Charge<1>>).branch(PlannedBranch::step::<Reserve<2>>))
            .step::<Confirm<3>>()
            .build()?,
        named("fork-reads")
            .parallel(|group| {
                group
                    .branch(|branch| branch.step::<Ship<0>>().after::<Reserve<1>, Ship<0>>(0))
                    .branch(PlannedBranch::step::<Charge<2>>)
                    .branch(PlannedBranch::step::<Reserve<3>>)
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
                    .branch(PlannedBranch::step::<Charge<1>>)
                    .branch(|branch| branch.step::<Ship<2>>().after::<Reserve<3>, Ship<2>>(2))
            })
            .build()?,
        named("pivot-fork")
            .step::<Reserve<0>>()
            .step::<Confirm<1>>()
            .pivot()
            .parallel(|group| {
                group.branch(PlannedBranch::step::<Announce<2>>).branch(PlannedBranch::step::<Confirm<3>>)
            })
            .step::<Charge<4>>()
            .build()?,
        named("fork-in-fork")
            .parallel(|group| {
                group
                    .branch(|branch| {
                        branch.step::<Charge<0>>().parallel(|group| {
                            group
                                .branch(PlannedBranch::step::<Reserve<1>>)
                                .branch(|branch| branch.after::<Ship<2>, Charge<0>>(0))
                        })
                    })
                    .branch(PlannedBranch::step::<Reserve<3>>)
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

/// Those with steps that only wait.
fn pause_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("nap").step::<Reserve<0>>().nap("nap", 900).step::<Charge<1>>().step::<Confirm<2>>().build()?,
        named("naps")
            .nap("nap", 40)
            .step::<Charge<0>>()
            .nap("doze", 5_000)
            .nap("rest", 0)
            .step::<Reserve<1>>()
            .nap("last", 300)
            .build()?,
        named("wakes").step::<Note<0>>().nap_until("until", 2_500).step::<Reserve<1>>().step::<Charge<2>>().build()?,
        named("nap-in-fork")
            .step::<Reserve<0>>()
            .parallel(|group| {
                group
                    .branch(PlannedBranch::step::<Charge<1>>)
                    .branch(|branch| branch.nap("nap", 1_500).step::<Reserve<2>>())
                    .branch(|branch| branch.step::<Ship<3>>().nap("doze", 9_000))
            })
            .step::<Reserve<4>>()
            .build()?,
        named("word").step::<Reserve<0>>().word(2_000).step::<Charge<1>>().step::<Confirm<2>>().build()?,
        named("first-word").word(400).step::<Charge<0>>().nap("nap", 100).step::<Reserve<1>>().build()?,
        named("word-in-fork")
            .step::<Charge<0>>()
            .parallel(|group| {
                group.branch(PlannedBranch::step::<Charge<1>>).branch(|branch| branch.word(6_000).step::<Reserve<2>>())
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

/// Definitions with steps that other services do.
///
/// # Errors
/// Those of the builder; there are none unless a definition here is wrong.
pub(crate) fn far_definitions() -> Result<Vec<SimDefinition>, SagaError> {
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
                group
                    .branch(PlannedBranch::step::<Elsewhere<Charge<1>>>)
                    .branch(PlannedBranch::step::<Elsewhere<Ship<2>>>)
            })
            .step::<Confirm<3>>()
            .build()?,
        named("far-end").step::<Charge<0>>().step::<Elsewhere<Note<1>>>().step::<Elsewhere<Reserve<2>>>().build()?,
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
    ])
}

/// A service as it is, and as its last version was, which hosts only some of its steps.
#[derive(Debug, Clone)]
pub(crate) struct SimService {
    pub(crate) now: Service<MemoryStore>,
    pub(crate) before: Service<MemoryStore>,
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

/// Builds a definition and its plan side by side.
struct Planner {
    builder: SagaBuilder<MemoryStore, SimInput>,
    variant: Variant,
    /// The steps that the next one comes after.
    tips: Vec<u8>,
    /// The pause before the next step.
    pause: Pause,
}

/// Builds a group and its plan side by side.
struct PlannedGroup {
    group: Group<MemoryStore, SimInput>,
    steps: Vec<StepPlan>,
    /// The steps that every branch comes after, and the last ones of the branches.
    from: Vec<u8>,
    ends: Vec<u8>,
}

/// Builds a branch and its plan side by side.
struct PlannedBranch {
    branch: Branch<MemoryStore, SimInput>,
    steps: Vec<StepPlan>,
    tips: Vec<u8>,
    pause: Pause,
}

fn plan_step<T: Planned>(steps: &mut Vec<StepPlan>, tips: &mut Vec<u8>, pause: &mut Pause, reads: Option<u8>) {
    let place = steps.len() as u8;
    let after = std::mem::replace(tips, vec![place]);
    let is_plain = after == place.checked_sub(1).into_iter().collect::<Vec<_>>();
    steps.push(StepPlan { after: (!is_plain).then_some(after), pause: std::mem::take(pause), ..T::plan(reads) });
}

/// The same for a step that is done for each item of a list: in the plan each is a branch.
fn plan_items<T: Planned>(steps: &mut Vec<StepPlan>, tips: &mut Vec<u8>, items: u8) {
    let place = steps.len() as u8;
    for item in 0..items {
        let name = format!("{}#{}", T::NAME, item + 1);
        steps.push(StepPlan { name, after: Some(tips.clone()), ..T::plan(None) });
    }
    if items > 0 {
        *tips = (place..place + items).collect();
    }
}

/// The inputs of the items of a list.
fn list(items: u8) -> impl Fn(&SimInput) -> Vec<SimInput> {
    move |input| (0..items).map(|item| SimInput { item, ..*input }).collect()
}

/// A step's input, made with the output of an earlier one.
fn read(input: &SimInput, output: SimOutput) -> SimInput {
    SimInput { reads: Some(output.effect), ..*input }
}

impl PlannedGroup {
    fn branch(self, build: impl FnOnce(PlannedBranch) -> PlannedBranch) -> Self {
        let Self { group, steps, from, mut ends } = self;
        let mut planned = Vec::new();
        let group = group.branch(|branch| {
            let PlannedBranch { branch, steps, tips, .. } =
                build(PlannedBranch { branch, steps, tips: from.clone(), pause: Pause::default() });
            ends.extend(tips);
            planned = steps;
            branch
        });
        Self { group, steps: planned, from, ends }
    }
}

impl PlannedBranch {
    /// Waits for a word, so many milliseconds at most.
    fn word(self, millis: u64) -> Self {
        Self { branch: self.branch.wait_for::<Word>(Duration::from_millis(millis), |_| Word { id: 0 }), ..self }
    }

    /// So many milliseconds before the next step.
    fn nap(mut self, name: &'static str, millis: u64) -> Self {
        self.pause.lasts += millis * 1_000;
        Self { branch: self.branch.sleep(name, Duration::from_millis(millis)), ..self }
    }

    fn step<T: Planned>(mut self) -> Self {
        plan_step::<T>(&mut self.steps, &mut self.tips, &mut self.pause, None);
        Self { branch: self.branch.step::<T>(), ..self }
    }

    fn after<T: Planned, E: Planned>(mut self, earlier: u8) -> Self {
        plan_step::<T>(&mut self.steps, &mut self.tips, &mut self.pause, Some(earlier));
        Self { branch: self.branch.step_after::<T, E>(read), ..self }
    }

    /// A step for each item of a list of so many, so many at once.
    fn for_each<T: Planned>(mut self, items: u8, at_once: usize) -> Self {
        plan_items::<T>(&mut self.steps, &mut self.tips, items);
        Self { branch: self.branch.for_each_with::<T>(at_once, list(items)), ..self }
    }

    fn parallel(self, build: impl FnOnce(PlannedGroup) -> PlannedGroup) -> Self {
        let Self { branch, steps, tips, .. } = self;
        let mut planned = (Vec::new(), Vec::new());
        let branch = branch.parallel(|group| {
            let PlannedGroup { group, steps, ends, .. } =
                build(PlannedGroup { group, steps, from: tips, ends: Vec::new() });
            planned = (steps, ends);
            group
        });
        Self { branch, steps: planned.0, tips: planned.1, pause: Pause::default() }
    }
}

fn named(name: &str) -> Planner {
    let variant = Variant { definition: name.to_owned(), steps: Vec::new() };
    Planner { builder: Saga::named(name).input(), variant, tips: Vec::new(), pause: Pause::default() }
}

impl Planner {
    /// Waits for a word, so many milliseconds at most.
    fn word(self, millis: u64) -> Self {
        let within = move |_: &SimInput| Duration::from_millis(millis);
        Self { builder: self.builder.wait_for_with::<Word>(within, |_| Word { id: 0 }), ..self }
    }

    /// So many milliseconds before the next step.
    fn nap(mut self, name: &'static str, millis: u64) -> Self {
        self.pause.lasts += millis * 1_000;
        Self { builder: self.builder.sleep_with(name, move |_| Duration::from_millis(millis)), ..self }
    }

    /// The next step waits for that millisecond of the run.
    fn nap_until(mut self, name: &'static str, millis: u64) -> Self {
        self.pause.until = millis * 1_000;
        let moment = SystemTime::UNIX_EPOCH + Duration::from_micros(ORIGIN_MICROS.unsigned_abs() + self.pause.until);
        Self { builder: self.builder.sleep_until(name, move |_| moment), ..self }
    }

    fn step<T: Planned>(mut self) -> Self {
        plan_step::<T>(&mut self.variant.steps, &mut self.tips, &mut self.pause, None);
        Self { builder: self.builder.step::<T>(), ..self }
    }

    /// A step whose input is made with the output of the earlier step at that place.
    fn after<T: Planned, E: Planned>(mut self, earlier: u8) -> Self {
        plan_step::<T>(&mut self.variant.steps, &mut self.tips, &mut self.pause, Some(earlier));
        Self { builder: self.builder.step_after::<T, E>(read), ..self }
    }

    /// A step for each item of a list of so many, so many at once.
    fn for_each<T: Planned>(mut self, items: u8, at_once: usize) -> Self {
        plan_items::<T>(&mut self.variant.steps, &mut self.tips, items);
        Self { builder: self.builder.for_each_with::<T>(at_once, list(items)), ..self }
    }

    /// A step whose input is made with what that item gave of the list that begins at the place `first`.
    fn after_item<T: Planned, E: Planned>(mut self, first: u8, item: u8) -> Self {
        plan_step::<T>(&mut self.variant.steps, &mut self.tips, &mut self.pause, Some(first + item));
        let input = move |input: &SimInput, outputs: Vec<SimOutput>| {
            let reads = outputs.get(usize::from(item)).map(|output| output.effect);
            SimInput { reads, ..*input }
        };
        Self { builder: self.builder.step_after::<T, Each<E>>(input), ..self }
    }

    fn parallel(self, build: impl FnOnce(PlannedGroup) -> PlannedGroup) -> Self {
        let Self { builder, mut variant, tips, .. } = self;
        let mut ends = Vec::new();
        let builder = builder.parallel(|group| {
            let steps = std::mem::take(&mut variant.steps);
            let planned = build(PlannedGroup { group, steps, from: tips, ends: Vec::new() });
            (variant.steps, ends) = (planned.steps, planned.ends);
            planned.group
        });
        Self { builder, variant, tips: ends, pause: Pause::default() }
    }

    fn pivot(mut self) -> Self {
        if let Some(step) = self.variant.steps.last_mut() {
            step.is_pivot = true;
        }
        Self { builder: self.builder.pivot(), ..self }
    }

    fn build(mut self) -> Result<SimDefinition, SagaError> {
        // A last step that cannot be undone is the pivot where none is declared.
        let has_pivot = self.variant.steps.iter().any(|step| step.is_pivot);
        let needs_none = |name: &str| name.starts_with("note");
        if let Some(last) = self.variant.steps.last_mut().filter(|last| !has_pivot && last.undo.is_none()) {
            last.is_pivot = !needs_none(&last.name);
        }
        Ok(SimDefinition { saga: self.builder.build()?, variant: self.variant })
    }
}
