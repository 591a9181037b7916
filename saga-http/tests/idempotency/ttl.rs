//! Keys of requests live no longer than the sagas that their responses name.

use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::{Retention, Runtime, Saga, StepError, saga_step};
use saga_http::Idempotency;

const HOUR: Duration = Duration::from_hours(1);

#[saga_step(no_compensation)]
async fn ship(_order: u32) -> Result<(), StepError> {
    Ok(())
}

async fn runtime(retention: Option<Retention>) -> Runtime<MemoryStore> {
    let saga = Saga::named("order").input::<u32>();
    let saga = if let Some(retention) = retention { saga.retention(retention) } else { saga };
    let saga = saga.step::<ship>().build().unwrap();
    let builder = Runtime::builder(MemoryStore::new()).saga(&saga);
    builder.settings(|settings| settings.starts_repeat_within = HOUR).start().await.unwrap()
}

fn keys_of(runtime: &Runtime<MemoryStore>) -> Idempotency<MemoryStore> {
    Idempotency::new(runtime).principal(|_| Some("ada".to_owned()))
}

/// G13: the `Location` that a retry gets names a saga that is known.
#[tokio::test]
async fn g13_a_key_that_outlives_its_saga_is_refused() {
    let runtime = runtime(Some(Retention::of(HOUR * 12).compensated(HOUR * 10).key(HOUR * 16))).await;
    let problem = keys_of(&runtime).ttl(HOUR * 17).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "ttl is 61200s, and the keys of sagas of order@1 are kept for 57600s after their ends: make ttl at most 57600s, or \
         keep them for at least 61200s with `.retention(..)`"
    );
    assert!(keys_of(&runtime).ttl(problem.kept).is_ok());
    assert!(format!("{:?}", keys_of(&runtime)).contains("ttl: 57600s"), "without a choice it is as long as it may be");
    runtime.shutdown().await;
}

#[tokio::test]
async fn where_sagas_are_kept_for_ever_a_key_may_live_for_any_time() {
    let runtime = runtime(None).await;
    assert!(format!("{:?}", keys_of(&runtime)).contains("ttl: 86400s"));
    assert!(keys_of(&runtime).ttl(HOUR * 24 * 365).is_ok());
    runtime.shutdown().await;
}
