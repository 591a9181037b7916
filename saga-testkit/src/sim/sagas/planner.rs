//! Definitions and what the checker knows of them, made side by side.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::{Duration, SystemTime};

use saga_core::saga::{Branch, Choice, Group, Nested, Root, SagaError, StepBuilder};
use saga_core::step::Step;
use saga_core::{Output, Outputs, Saga, SubSaga, Wait};

use super::definition::SimDefinition;
use super::locks::{ENTITIES, Hold, HoldAll, entity};
use super::naming::{CHOICES, SUB};
use super::payload::{SimInput, SimOutput, SimSignal};
use super::steps::Planned;
use crate::checker::{ArmPlan, Nap, StepPlan, Variant};
use crate::sim::schedule::splitmix64;
use crate::sim::world::SimStore;

/// The time that the clock of the sagas' store shows when a run begins: 2025-01-01 00:00 UTC.
pub(crate) const ORIGIN_MICROS: i64 = 1_735_689_600_000_000;
const ARMS: [&str; 2] = ["left", "right"];

/// Steps of a definition, of a branch or of an arm, and their plan.
pub(crate) struct Planner<P> {
    chain: StepBuilder<SimStore, SimInput, P>,
    definition: String,
    plan: Plan,
}

/// Builds a group.
pub(crate) struct PlannedGroup {
    group: Group<SimStore, SimInput>,
    plan: Plan,
    /// The steps that every branch comes after, and the last ones of the branches.
    from: Vec<u8>,
    ends: Vec<u8>,
    /// The entities that the saga has in front of it.
    held: Vec<u8>,
}

/// Builds a choice. In the plan it is no step: those of its arms come after what it stands behind.
pub(crate) struct PlannedChoice {
    choice: Choice<SimStore, SimInput>,
    plan: Plan,
    number: u8,
    arms: u8,
    from: Vec<u8>,
    ends: Vec<u8>,
    /// Whether one of its arms certainly runs.
    is_total: bool,
}

/// A saga as a step, which returns what that step of it gave.
pub(crate) struct Sub<T>(PhantomData<fn(T)>);

impl<T: Planned> SubSaga for Sub<T> {
    const NAME: &'static str = SUB;
    type Input = SimInput;
    type Output = T::Output;
}

#[derive(Default)]
struct Plan {
    steps: Vec<StepPlan>,
    /// Whether the next one is a step of the saga that is a step.
    is_sub: bool,
    /// The steps that the next one comes after.
    tips: Vec<u8>,
    /// The arms that the next one stands in.
    arms: Vec<ArmPlan>,
    /// What stands before it.
    nap: Nap,
    /// The entities that the saga has from the next one on.
    held: Vec<u8>,
}

impl Plan {
    fn step<T: Planned>(&mut self, reads: Option<u8>) {
        let place = self.steps.len() as u8;
        let after = std::mem::replace(&mut self.tips, vec![place]);
        let is_plain = after == place.checked_sub(1).into_iter().collect::<Vec<_>>();
        let arms = self.arms.clone();
        let (is_sub, nap) = (self.is_sub, std::mem::take(&mut self.nap));
        let (after, held) = ((!is_plain).then_some(after), self.held.clone());
        self.steps.push(StepPlan { after, arms, is_sub, nap, held, ..T::plan(reads) });
    }

    /// The same for a step that is done for each item of a list: in the plan each is a branch.
    fn items<T: Planned>(&mut self, items: u8) {
        let place = self.steps.len() as u8;
        for item in 0..items {
            let name = format!("{}#{}", T::NAME, item + 1);
            let (after, arms) = (Some(self.tips.clone()), self.arms.clone());
            let held = self.held.clone();
            self.steps.push(StepPlan { name, after, arms, held, ..T::plan(None) });
        }
        if items > 0 {
            self.tips = (place..place + items).collect();
        }
    }
}

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

/// From here on the conditions of this thread's schedule hold as this seed has it.
pub(crate) fn begin_asking(seed: u64) {
    ASKED.set(seed);
}

/// Whether a condition holds: each time it is asked it may be otherwise, so that one that is asked twice is found out.
fn flip() -> bool {
    let mut asked = ASKED.get();
    let drawn = splitmix64(&mut asked);
    ASKED.set(asked);
    drawn.is_multiple_of(2)
}

/// The inputs of the items of a list.
fn list(items: u8) -> impl Fn(&SimInput) -> Vec<SimInput> {
    move |input| (0..items).map(|item| SimInput { item, ..*input }).collect()
}

/// A step's input, made with the output of an earlier one.
fn read<E: Step<Output = SimOutput>>(input: &SimInput, Output(output): Output<E>) -> SimInput {
    SimInput { reads: Some(output.effect), ..*input }
}

/// Runs a closure that gets a part of the builder and gives it back, in another one that does the same with a plan beside.
fn with_branch(
    plan: Plan,
    build: impl FnOnce(Planner<Nested>) -> Planner<Nested>,
    place: &mut Option<Plan>,
) -> impl FnOnce(Branch<SimStore, SimInput>) -> Branch<SimStore, SimInput> {
    move |chain| {
        let made = build(Planner { chain, definition: String::new(), plan });
        *place = Some(made.plan);
        made.chain
    }
}

impl PlannedGroup {
    pub(crate) fn branch(self, build: impl FnOnce(Planner<Nested>) -> Planner<Nested>) -> Self {
        let Self { group, mut plan, from, mut ends, held } = self;
        plan.tips.clone_from(&from);
        // What another branch locks, this one does not have.
        let of_others = std::mem::replace(&mut plan.held, held.clone());
        let mut made = None;
        let group = group.branch(with_branch(plan, build, &mut made));
        let mut plan = made.unwrap_or_default();
        plan.held.extend(of_others);
        ends.append(&mut plan.tips);
        // A nap at its end is counted from there, and not from the end of the others.
        plan.nap = Nap::default();
        Self { group, plan, from, ends, held }
    }
}

impl PlannedChoice {
    pub(crate) fn when(self, build: impl FnOnce(Planner<Nested>) -> Planner<Nested>) -> Self {
        let arm = ARMS[usize::from(self.arms)];
        self.arm(arm, build, |choice, build| choice.when(arm, |_: &SimInput| flip(), build))
    }

    /// An arm whose condition looks at what an earlier step gave.
    pub(crate) fn when_after<E: Planned>(self, build: impl FnOnce(Planner<Nested>) -> Planner<Nested>) -> Self {
        let arm = ARMS[usize::from(self.arms)];
        let holds = |_: &SimInput, Output(output): Output<E>| output.effect.is_multiple_of(2) ^ flip();
        self.arm(arm, build, |choice, build| choice.when(arm, holds, build))
    }

    pub(crate) fn otherwise(self, build: impl FnOnce(Planner<Nested>) -> Planner<Nested>) -> Self {
        Self { is_total: true, ..self.arm("otherwise", build, |choice, build| choice.otherwise(build)) }
    }

    fn arm<B: FnOnce(Planner<Nested>) -> Planner<Nested>>(
        self,
        arm: &str,
        build: B,
        add: impl FnOnce(
            Choice<SimStore, SimInput>,
            Box<dyn FnOnce(Branch<SimStore, SimInput>) -> Branch<SimStore, SimInput> + '_>,
        ) -> Choice<SimStore, SimInput>,
    ) -> Self {
        let Self { choice, mut plan, number, arms, from, mut ends, is_total } = self;
        plan.tips.clone_from(&from);
        plan.arms.push(ArmPlan { choice: CHOICES[usize::from(number)].to_owned(), arm: arm.to_owned() });
        let mut made = None;
        let choice = add(choice, Box::new(|chain| with_branch(plan, build, &mut made)(chain)));
        let mut plan = made.unwrap_or_default();
        ends.append(&mut plan.tips);
        // A nap at its end is counted from there, and not from the end of the others.
        plan.nap = Nap::default();
        plan.arms.pop();
        Self { choice, plan, number, arms: arms + 1, from, ends, is_total }
    }
}

pub(crate) fn named(name: &str) -> Planner<Root> {
    Planner { chain: Saga::named(name).input(), definition: name.to_owned(), plan: Plan::default() }
}

impl<P> Planner<P> {
    /// Waits for a signal, so many milliseconds at most.
    pub(crate) fn wait(self, millis: u64) -> Self {
        Self {
            chain: self.chain.wait_for::<SimSignal>(
                Wait::within(Duration::from_millis(millis)).or(|_: &SimInput| SimSignal { id: 0 }),
            ),
            ..self
        }
    }

    /// The same, where the input says for how long.
    pub(crate) fn wait_with(self, millis: u64) -> Self {
        let within = move |_: &SimInput| Duration::from_millis(millis);
        Self {
            chain: self.chain.wait_for::<SimSignal>(Wait::within_from(within).or(|_: &SimInput| SimSignal { id: 0 })),
            ..self
        }
    }

    /// So many milliseconds before the next step.
    pub(crate) fn nap(mut self, name: &'static str, millis: u64) -> Self {
        self.plan.nap.lasts += millis * 1_000;
        Self { chain: self.chain.sleep(name, Duration::from_millis(millis)), ..self }
    }

    /// The same, where the input says for how long.
    pub(crate) fn nap_with(mut self, name: &'static str, millis: u64) -> Self {
        self.plan.nap.lasts += millis * 1_000;
        Self { chain: self.chain.sleep_from(name, move |_: &SimInput| Duration::from_millis(millis)), ..self }
    }

    /// The next step waits for that millisecond of the run.
    pub(crate) fn nap_until(mut self, name: &'static str, millis: u64) -> Self {
        self.plan.nap.until = millis * 1_000;
        let moment = SystemTime::UNIX_EPOCH + Duration::from_micros(ORIGIN_MICROS.unsigned_abs() + self.plan.nap.until);
        Self { chain: self.chain.sleep_until(name, move |_: &SimInput| moment), ..self }
    }

    /// The semantic lock on an entity.
    pub(crate) fn hold<const N: usize>(mut self) -> Self {
        self.plan.held.push(N as u8);
        Self { chain: self.chain.semantic_lock::<Hold<N>, _>(|_: &SimInput| entity(N as u8)), ..self }
    }

    /// The same, for which the saga waits so many milliseconds at most.
    pub(crate) fn hold_within<const N: usize>(mut self, millis: u64) -> Self {
        self.plan.held.push(N as u8);
        let within = Duration::from_millis(millis);
        Self { chain: self.chain.semantic_lock_within::<Hold<N>, _>(within, |_: &SimInput| entity(N as u8)), ..self }
    }

    /// One semantic lock on all entities.
    pub(crate) fn hold_all(mut self) -> Self {
        self.plan.held.extend(0..ENTITIES);
        let all = |_: &SimInput| (0..ENTITIES).map(entity).collect::<Vec<_>>();
        Self { chain: self.chain.semantic_lock::<HoldAll, _>(all), ..self }
    }

    /// The semantic lock on that entity ends when the last step is done.
    pub(crate) fn release<const N: usize>(mut self) -> Self {
        self.plan.held.retain(|held| *held != N as u8);
        Self { chain: self.chain.release::<Hold<N>>(), ..self }
    }

    pub(crate) fn step<T: Planned>(mut self) -> Self {
        self.plan.step::<T>(None);
        Self { chain: self.chain.step::<T>(), ..self }
    }

    /// A step whose input is made with the output of the earlier step at that place.
    pub(crate) fn after<T: Planned, E: Planned>(mut self, earlier: u8) -> Self {
        self.plan.step::<T>(Some(earlier));
        Self { chain: self.chain.step_from::<T, _>(read::<E>), ..self }
    }

    /// The same for an earlier step that stands in an arm.
    pub(crate) fn after_if_taken<T: Planned, E: Planned>(mut self, earlier: u8) -> Self {
        self.plan.step::<T>(Some(earlier));
        let input = |input: &SimInput, output: Option<Output<E>>| SimInput {
            reads: output.map(|Output(output)| output.effect),
            ..*input
        };
        Self { chain: self.chain.step_from::<T, _>(input), ..self }
    }

    /// A step for each item of a list of so many, so many at once.
    pub(crate) fn for_each<T: Planned>(mut self, items: u8, at_once: usize) -> Self {
        self.plan.items::<T>(items);
        Self { chain: self.chain.for_each::<T, _>(at_once, list(items)), ..self }
    }

    /// A step whose input is made with what that item gave of the list that begins at the place `first`.
    pub(crate) fn after_item<T: Planned, E: Planned>(mut self, first: u8, item: u8) -> Self {
        self.plan.step::<T>(Some(first + item));
        let input = move |input: &SimInput, Outputs(outputs): Outputs<E>| {
            let reads = outputs.get(usize::from(item)).map(|output| output.effect);
            SimInput { reads, ..*input }
        };
        Self { chain: self.chain.step_from::<T, _>(input), ..self }
    }

    pub(crate) fn parallel(self, build: impl FnOnce(PlannedGroup) -> PlannedGroup) -> Self {
        let Self { chain, definition, plan } = self;
        let mut made = Plan::default();
        let chain = chain.parallel(|group| {
            let (from, held) = (plan.tips.clone(), plan.held.clone());
            let planned = build(PlannedGroup { group, plan, from, ends: Vec::new(), held });
            made = Plan { tips: planned.ends, ..planned.plan };
            planned.group
        });
        Self { chain, definition, plan: made }
    }

    /// A choice, which is the so manyth of its definition.
    pub(crate) fn choose(self, number: u8, build: impl FnOnce(PlannedChoice) -> PlannedChoice) -> Self {
        let Self { chain, definition, plan } = self;
        let mut made = Plan::default();
        let chain = chain.choose(CHOICES[usize::from(number)], |choice| {
            let from = plan.tips.clone();
            let planned =
                build(PlannedChoice { choice, plan, number, arms: 0, from, ends: Vec::new(), is_total: false });
            let mut tips = planned.ends;
            if !planned.is_total {
                tips.extend(planned.from);
            }
            made = Plan { tips, ..planned.plan };
            planned.choice
        });
        Self { chain, definition, plan: made }
    }

    pub(crate) fn pivot(mut self) -> Self {
        if let Some(step) = self.plan.steps.last_mut() {
            step.is_pivot = true;
        }
        Self { chain: self.chain.pivot(), ..self }
    }
}

impl Planner<Root> {
    /// A saga as a step, with the result of that step of it. In the plan its steps stand among the others.
    pub(crate) fn sub_saga<R: Planned>(self, build: impl FnOnce(Self) -> Self) -> Result<Self, SagaError> {
        let Self { chain, definition, plan } = self;
        let child = format!("{definition}-sub");
        let made =
            build(Self { chain: Saga::named(&child).input(), definition: child, plan: Plan { is_sub: true, ..plan } });
        let saga = made.chain.returns::<R>().build()?;
        Ok(Self { chain: chain.sub_saga::<Sub<R>>(&saga), definition, plan: Plan { is_sub: false, ..made.plan } })
    }

    /// A step whose input is made with the result of the saga that is a step, which the step at that place gave.
    pub(crate) fn after_sub<T: Planned, R: Planned>(mut self, earlier: u8) -> Self {
        self.plan.step::<T>(Some(earlier));
        Self { chain: self.chain.step_from::<T, _>(read::<Sub<R>>), ..self }
    }

    pub(crate) fn build(self) -> Result<SimDefinition, SagaError> {
        let mut steps = self.plan.steps;
        // A last step that cannot be undone is the pivot where none is declared.
        let has_pivot = steps.iter().any(|step| step.is_pivot);
        let needs_none = |name: &str| name.starts_with("note");
        if let Some(last) = steps.last_mut().filter(|last| !has_pivot && last.undo.is_none()) {
            last.is_pivot = !needs_none(&last.name);
        }
        Ok(SimDefinition::new(self.chain.build()?, Variant { definition: self.definition, steps }))
    }
}
