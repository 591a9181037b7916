//! Bad input to the library: each is a typed error or a stuck saga with a sentence that says what to do, and nothing is
//! lost.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod definitions;
mod handlers;
mod inside;
mod outputs;
mod second_process;
mod starts;
mod stores;

use saga_core::engine::SagaStatus;
use saga_core::{Outcome, Runtime};
use saga_tests::Shop;

/// The step that a saga is stuck at, and why.
fn stuck(outcome: &Outcome) -> (&str, &str) {
    match outcome {
        Outcome::Stuck { step, reason, .. } => (step, reason),
        other => panic!("the saga is {other}"),
    }
}

/// The step that failed, and why.
fn compensated(outcome: &Outcome) -> (&str, &str) {
    match outcome {
        Outcome::Compensated { failed_step, reason, .. } => (failed_step, reason.message()),
        other => panic!("the saga is {other}"),
    }
}

fn is_completed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Completed { .. })
}

/// An operator tries again what is stuck; answers how the saga ends.
async fn retry<S: Shop>(runtime: &Runtime<S>, key: &str) -> Outcome {
    let seen: SagaStatus = runtime.status(key).await.unwrap().unwrap();
    runtime.admin().control(key).at_revision(seen.revision).retry("repaired").await.unwrap();
    runtime.attach(key).await.unwrap().outcome().await.unwrap()
}
