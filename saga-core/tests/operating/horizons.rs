//! The runtime does not start where something is kept for too short a time.

use std::time::Duration;

use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::{Retention, Runtime, Saga, Settings};

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", compensated)]
    pub async fn charge_card(cents: u64) -> Result<String, StepError>;
}

const FULL: Duration = Duration::from_hours(2);
/// With the ids of messages kept for an hour, one that is 45 minutes old is acted on, and clocks differ by 5 minutes.
const HOSTED: Duration = Duration::from_mins(50);

async fn starts_with(key: Duration) -> Result<(), String> {
    starts(Retention::of(FULL).key(key), |settings| settings.retention = Duration::from_hours(1)).await
}

async fn starts(retention: Retention, change: impl FnOnce(&mut Settings)) -> Result<(), String> {
    let saga =
        Saga::named("order").input::<u64>().retention(retention).step::<contracts::charge_card>().build().unwrap();
    let builder =
        Runtime::builder(MemoryStore::new()).transport(MemoryTransport::new()).saga(&saga).settings(|settings| {
            settings.service = Some("orders".to_owned());
            settings.starts_repeat_within = Duration::from_mins(1);
            change(settings);
        });
    let runtime = builder.start().await.map_err(|error| error.to_string())?;
    runtime.shutdown().await;
    Ok(())
}

/// G13: the message that a saga is closed may come as late as any other message, and the host keeps its record for as long again.
/// A key that was free before that would be answered from the record of another saga.
#[tokio::test]
async fn g13_keys_are_kept_until_every_host_has_forgotten_them() {
    let error = starts_with((FULL + HOSTED * 2).saturating_sub(Duration::from_secs(1)))
        .await
        .expect_err("the key is kept for too short");
    assert!(error.contains("the hosts of its remote steps"), "{error}");
    assert!(error.contains("keep them for at least 3 h 40 min"), "{error}");
    starts_with(FULL + HOSTED * 2).await.expect("long enough");
}

/// G13: a saga is kept for as long as the settings say that something about it may arrive, and for no other reason. No call of
/// a step that another service does is under way here.
#[tokio::test]
async fn g13_the_clock_skew_and_the_ids_of_messages_say_how_long_a_saga_with_remote_steps_is_kept() {
    let seconds = Duration::from_secs;
    let short = |settings: &mut Settings| {
        (settings.retention, settings.reply_timeout) = (seconds(40), seconds(3));
        (settings.lease_ttl, settings.member_ttl) = (seconds(6), seconds(6));
        (settings.clock_skew_max, settings.closed_asked_after) = (seconds(2), Some(seconds(20)));
    };
    // A message is acted on until it is 30 s old; clocks differ by 2 s, and a lease is 6 s.
    let (full, key) = (seconds(38), seconds(38 + 2 * 32));
    let error = starts(Retention::of(seconds(37)).key(key), short).await.expect_err("it is kept for too short");
    assert!(
        error.contains("keeps completed sagas for 37 s") && error.contains("keep them for at least 38 s"),
        "{error}"
    );
    starts(Retention::of(full).key(key), short).await.expect("long enough");
    let wide = |settings: &mut Settings| {
        short(settings);
        settings.clock_skew_max = seconds(3);
    };
    let error = starts(Retention::of(full).key(key), wide).await.expect_err("clocks differ by more");
    assert!(error.contains("keep them for at least 39 s"), "{error}");
}
