//! Durations that no clock can take: they come from users and their data, and end nothing but, much later, their own wait.
#![cfg(feature = "macros")]

use std::time::{Duration, SystemTime};

use saga_core::engine::RuntimeBuilder;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{
    Outcome, Resolved, Runtime, Saga, Settings, Signal, StepContext, StepError, Wait, saga_compensation,
    saga_resolution, saga_step,
};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

const HOUR: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Approval;

impl Signal for Approval {
    const NAME: &'static str = "approval";
}

#[saga_step(no_compensation)]
async fn write(_conn: &mut MemoryConn, _for: Duration) -> Result<(), StepError> {
    Ok(())
}

/// Nearly the longest that can be said; twice as long is too long for a `Duration`.
#[saga_step(compensate = unsend, timeout = "10000000000000000s", retry(attempts = 2, base = "1ms"), on_exhausted = "compensate")]
async fn send(_ctx: &StepContext, _for: Duration) -> Result<(), StepError> {
    Err(StepError::retry("no answer"))
}

#[saga_compensation(timeout = "10000000000000000s")]
async fn unsend(_ctx: &StepContext, _for: Duration) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = unsend, resolve = find, timeout = "10000000000000000s", retry(attempts = 2, base = "1ms"), on_exhausted = "compensate")]
async fn send_once(_ctx: &StepContext, _for: Duration) -> Result<(), StepError> {
    Err(StepError::retry("no answer"))
}

#[saga_resolution(timeout = "10000000000000000s")]
async fn find(_ctx: &StepContext, _for: Duration) -> Result<Resolved<()>, StepError> {
    Ok(Resolved::Done(()))
}

fn named(name: &'static str) -> saga_core::saga::SagaBuilder<MemoryStore, Duration> {
    Saga::named(name).input::<Duration>()
}

#[tokio::test(start_paused = true)]
async fn g8_no_duration_of_a_user_ends_a_lane() {
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(200_000_000_000);
    let sagas = [
        named("ordinary").step::<write>().build().unwrap(),
        named("sleep").sleep("nap", Duration::MAX).step::<write>().build().unwrap(),
        named("sleep-behind").step::<write>().sleep("nap", Duration::MAX).build().unwrap(),
        named("sleep-with").sleep_from("nap", |duration: &Duration| *duration).step::<write>().build().unwrap(),
        named("sleep-with-behind").step::<write>().sleep_from("nap", |duration: &Duration| *duration).build().unwrap(),
        named("sleep-until").sleep_until("nap", move |_: &Duration| far).step::<write>().build().unwrap(),
        named("wait")
            .wait_for::<Approval>(Wait::within(Duration::MAX).or(|_: &Duration| Approval))
            .step::<write>()
            .build()
            .unwrap(),
        named("wait-with")
            .wait_for::<Approval>(Wait::within_from(|duration: &Duration| *duration).or(|_: &Duration| Approval))
            .build()
            .unwrap(),
        named("deadline").deadline(Duration::MAX).sleep("nap", Duration::MAX).step::<write>().build().unwrap(),
        named("send").step::<send>().build().unwrap(),
        named("send-once").step::<send_once>().build().unwrap(),
    ];
    let builder = sagas.iter().fold(Runtime::builder(MemoryStore::new()), RuntimeBuilder::saga);
    let runtime = builder.start().await.unwrap();
    // The clock of the runtime does not stand at its beginning.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let goes_on = async |key: String| {
        let running = runtime.start(&sagas[0], &key, Duration::ZERO).await.unwrap();
        let outcome = timeout(HOUR, running.outcome()).await.unwrap().unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{key}: {outcome}");
    };
    runtime.start(&sagas[0], "much-later", Duration::ZERO).after(Duration::MAX).await.unwrap();
    goes_on("beside-much-later".to_owned()).await;
    runtime.start(&sagas[1], "long-enough", Duration::ZERO).within(Duration::MAX).await.unwrap();
    goes_on("beside-long-enough".to_owned()).await;
    for saga in &sagas {
        runtime.start(saga, saga.name(), Duration::MAX).await.unwrap();
        goes_on(format!("beside-{}", saga.name())).await;
    }
    tokio::time::sleep(HOUR).await;
    goes_on("an-hour-later".to_owned()).await;
    let outcome = runtime.attach("send-once").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(runtime.health().panicked, []);
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_setting_that_no_clock_can_take_is_refused() {
    type Change = fn(&mut Settings);
    let cases: [(&str, Change); 5] = [
        ("lease_ttl", |settings| settings.lease_ttl = Duration::MAX),
        ("poll_interval", |settings| settings.poll_interval = Duration::MAX),
        ("member_ttl", |settings| settings.member_ttl = Duration::MAX),
        ("reply_timeout", |settings| settings.reply_timeout = Duration::MAX),
        ("retention", |settings| settings.retention = Duration::MAX),
    ];
    for (name, set) in cases {
        let saga = named("ordinary").step::<write>().build().unwrap();
        let refused = Runtime::builder(MemoryStore::new()).saga(&saga).settings(set).start().await.unwrap_err();
        assert!(refused.to_string().contains(&format!("{name} is longer than 100 years")), "{refused}");
    }
}
