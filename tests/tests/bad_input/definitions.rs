//! Definitions that do not hold together: all is said before anything runs.

use saga_core::engine::BuildError;
use saga_core::memory::MemoryStore;
use saga_core::saga::SagaProblem;
use saga_core::{Output, Runtime, Saga};
use saga_tests::{Order, Shop, book, charge, finish, on_both_stores, order_saga, ship};

fn problem(problems: &[SagaProblem]) -> (&SagaProblem, String) {
    let [problem] = problems else { panic!("one problem is expected: {problems:?}") };
    (problem, problem.to_string())
}

#[test]
fn a_step_name_twice() {
    let saga = Saga::<MemoryStore, ()>::named("twice").input::<Order>();
    let error = saga.step::<charge>().step::<charge>().build().unwrap_err();
    let (problem, sentence) = problem(&error.problems);
    assert!(matches!(problem, SagaProblem::DuplicateStep { step: "charge" }), "{sentence}");
    assert!(sentence.contains("give one of them another name with `#[saga_step(name ="), "{sentence}");
    assert!(error.to_string().starts_with("the saga `twice` cannot be built: "), "{error}");
}

#[test]
fn an_output_of_a_later_step() {
    let saga = Saga::<MemoryStore, ()>::named("late").input::<Order>();
    let error = saga.step::<ship>().step::<charge>().build().unwrap_err();
    let (problem, sentence) = problem(&error.problems);
    assert!(matches!(problem, SagaProblem::LateOutput { step: "ship", needed: "charge" }), "{sentence}");
    assert!(sentence.contains("put `.step::<charge>()` in front"), "{sentence}");
}

#[test]
fn a_mapping_of_a_later_step() {
    let saga = Saga::<MemoryStore, ()>::named("late").input::<Order>();
    let saga = saga.step_from::<charge, _>(|order: &Order, _: Output<ship>| order.clone()).step::<ship>();
    let error = saga.build().unwrap_err();
    let (_, sentence) = problem(&error.problems);
    assert!(sentence.contains("`charge` needs the output of `ship`"), "{sentence}");
}

#[test]
fn a_step_without_a_compensation_in_front() {
    let saga = Saga::<MemoryStore, ()>::named("front").input::<Order>();
    let error = saga.step::<finish>().step::<charge>().build().unwrap_err();
    let (problem, sentence) = problem(&error.problems);
    assert!(matches!(problem, SagaProblem::NoCompensation { step: "finish" }), "{sentence}");
    assert!(sentence.contains("`#[saga_step(compensate = ..)]`") && sentence.contains("`.pivot()`"), "{sentence}");
}

#[test]
fn everything_is_said_at_once() {
    let saga = Saga::<MemoryStore, ()>::named("Not a name").input::<Order>().version(0).pivot();
    let error = saga.step::<book>().step::<book>().step::<ship>().build().unwrap_err();
    assert_eq!(error.problems.len(), 5, "{error}");
}

async fn a_state_that_was_never_given<S: Shop>() {
    let (store, _folder) = S::fresh().await;
    let error = Runtime::builder(store).saga(&order_saga()).start().await.unwrap_err();
    let BuildError::Invalid(problems) = &error else { panic!("{error}") };
    assert_eq!(problems.len(), 7, "each step and each compensation that takes it is named: {problems:?}");
    assert!(problems[0].contains("the step `book` of order version 1 takes `State<"), "{}", problems[0]);
    assert!(problems[0].ends_with("add `.state(..)` with a value of that type"), "{}", problems[0]);
}

async fn a_definition_that_was_never_given<S: Shop>() {
    let (store, _folder) = S::fresh().await;
    let runtime = Runtime::builder(store).start().await.unwrap();
    let error = runtime.start(&order_saga(), "k", Order::of(1)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the saga `order version 1` is not registered; give it to the runtime with `.saga(&..)`"
    );
    assert!(runtime.status("k").await.unwrap().is_none());
}

on_both_stores!(a_state_that_was_never_given, a_definition_that_was_never_given);
