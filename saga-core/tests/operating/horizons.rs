//! The runtime does not start where something is kept for too short a time.

use std::time::Duration;

use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::{Retention, Runtime, Saga};

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", compensated)]
    pub async fn charge_card(cents: u64) -> Result<String, StepError>;
}

const FULL: Duration = Duration::from_hours(2);
/// With the ids of messages kept for an hour, one that is 45 minutes old is acted on, and clocks differ by 5 minutes.
const HOSTED: Duration = Duration::from_mins(50);

async fn starts_with(key: Duration) -> Result<(), String> {
    let retention = Retention::of(FULL).key(key);
    let saga =
        Saga::named("order").input::<u64>().retention(retention).step::<contracts::charge_card>().build().unwrap();
    let builder =
        Runtime::builder(MemoryStore::new()).transport(MemoryTransport::new()).saga(&saga).settings(|settings| {
            settings.service = Some("orders".to_owned());
            settings.retention = Duration::from_hours(1);
            settings.starts_repeat_within = Duration::from_mins(1);
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
    assert!(error.contains("keep them for at least 13200s"), "{error}");
    starts_with(FULL + HOSTED * 2).await.expect("long enough");
}
