//! What people do with sagas, on every store: by a process that works on them, and by one that does not.

mod again;
mod bulk;
mod pause;

use saga_core::engine::{AuditEntry, SagaAdmin};
use saga_core::{Outcome, Runtime};
use saga_tests::{Act as Does, Fixture, Shop};

/// A desk without a runtime, of somebody who says who he is.
fn desk<S: Shop>(fixture: &Fixture<S>) -> SagaAdmin<S> {
    SagaAdmin::new(fixture.store.clone()).saga(&fixture.saga).actor("ann")
}

/// What people did with a saga, the oldest first.
async fn acts<S: Shop>(fixture: &Fixture<S>, runtime: &Runtime<S>, key: &str) -> Vec<AuditEntry> {
    fixture.status(runtime, key).await.history.into_iter().filter_map(|entry| entry.audit).collect()
}

/// A saga that is stuck at `ship`, which may have happened.
async fn stuck_at_ship<S: Shop>(fixture: &Fixture<S>, runtime: &Runtime<S>, key: &str) -> u64 {
    fixture.world.always(&format!("{key}:ship"), Does::LoseAnswer);
    let outcome = fixture.run(runtime, key).await;
    assert!(matches!(&outcome, Outcome::Stuck { step, .. } if step == "ship"), "{outcome}");
    fixture.status(runtime, key).await.revision
}

async fn ended<S: Shop>(runtime: &Runtime<S>, key: &str) -> Outcome {
    runtime.attach(key).await.unwrap().closed().await.unwrap()
}
