//! Calls of the runtime from inside a transactional step: they would wait for the connection that the step holds.

use std::sync::{Arc, Mutex, OnceLock};

use saga_core::engine::RuntimeError;
use saga_core::store::SagaFilter;
use saga_core::{Runtime, Saga, StartError, State, StepError, saga_step};
use saga_tests::{Fixture, Order, Shop, charge, on_both_stores};

use crate::{compensated, is_completed};

/// What the step needs to call the runtime that runs it.
struct Line<S: Shop> {
    runtime: Arc<OnceLock<Runtime<S>>>,
    other: Saga<S, Order>,
    answers: Arc<Mutex<Vec<String>>>,
}

impl<S: Shop> Clone for Line<S> {
    fn clone(&self) -> Self {
        let (runtime, answers) = (Arc::clone(&self.runtime), Arc::clone(&self.answers));
        Self { runtime, other: self.other.clone(), answers }
    }
}

#[saga_step]
async fn ask<S: Shop>(conn: &mut S::Conn, order: Order, State(line): State<Line<S>>) -> Result<(), StepError> {
    let is_refused = order.amount == 0;
    let runtime = line.runtime.get().expect("the runtime was started");
    let refused = |answer: Result<(), RuntimeError>| match answer {
        Err(error @ RuntimeError::InsideStep) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let answers = match runtime.start(&line.other, "by-start", order.clone()).await {
        Err(error @ StartError::InsideStep) => vec![error.to_string()],
        other => panic!("{other:?}"),
    };
    let answers = answers.into_iter().chain([
        refused(runtime.status("k").await.map(drop)),
        refused(runtime.attach("k").await.map(drop)),
        refused(runtime.admin().query().list(SagaFilter::default()).await.map(drop)),
        refused(runtime.admin().query().count().await.map(drop)),
        refused(runtime.admin().control("k").at_revision(1).retry("why not").await),
        refused(runtime.admin().query().status("k").await.map(drop)),
        refused(runtime.admin().query().orphaned(1).await.map(drop)),
    ]);
    line.answers.lock().unwrap().extend(answers);
    match runtime.start(&line.other, "by-start-in", order).in_tx(conn).await {
        Ok(started) => started.committed(),
        Err(error) => panic!("{error}"),
    }
    if is_refused { Err(StepError::reject("declined")) } else { Ok(()) }
}

async fn a_step_that_calls_the_runtime<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let other = Saga::<S, ()>::named("other").input::<Order>().step::<charge>().build().unwrap();
    let asks = Saga::<S, ()>::named("asks").input::<Order>().step::<ask<S>>().build().unwrap();
    let line = Line { runtime: Arc::default(), other: other.clone(), answers: Arc::default() };
    let runtime = fixture.builder().saga(&other).saga(&asks).state(line.clone()).start().await.unwrap();
    assert!(line.runtime.set(runtime.clone()).is_ok());

    let outcome = runtime.start(&asks, "no", Order::of(0)).await.unwrap().outcome().await.unwrap();
    assert_eq!(compensated(&outcome), ("ask", "declined"));
    assert!(
        runtime.status("by-start-in").await.unwrap().is_none(),
        "it was started in a transaction that did not commit"
    );
    line.answers.lock().unwrap().clear();

    let outcome = runtime.start(&asks, "k", Order::of(1)).await.unwrap().outcome().await.unwrap();
    assert!(is_completed(&outcome), "{outcome}");
    let answers = line.answers.lock().unwrap().clone();
    assert_eq!(answers.len(), 8, "the step ran once and was refused each time: {answers:?}");
    assert!(answers[0].contains("`.in_tx(conn)`") && answers[0].contains("`ctx.emit`"), "{}", answers[0]);
    assert!(answers[1].contains("must not ask the runtime"), "{}", answers[1]);
    assert!(runtime.status("by-start").await.unwrap().is_none());
    let started = runtime.attach("by-start-in").await.unwrap();
    assert!(is_completed(&started.outcome().await.unwrap()), "`start_in` is the way to do it");
}

on_both_stores!(a_step_that_calls_the_runtime);
