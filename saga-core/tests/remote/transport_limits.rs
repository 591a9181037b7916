//! The runtime does not start where the transport cannot carry what the runtime may send, or delivers later than it remembers.

use std::time::Duration;

use async_trait::async_trait;
use saga_core::memory::{MemoryStore, MemoryTransport};
use saga_core::transport::{Incoming, Message, Subscription, Transport, TransportError};
use saga_core::{Runtime, Settings};

/// The memory transport with limits.
struct Limited {
    inner: MemoryTransport,
    payload_bytes_max: Option<usize>,
    redelivers_within: Option<Duration>,
}

#[async_trait]
impl Transport for Limited {
    fn name(&self) -> &'static str {
        "limited"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        self.inner.publish(messages).await
    }

    fn payload_bytes_max(&self) -> Option<usize> {
        self.payload_bytes_max
    }

    fn redelivers_within(&self) -> Option<Duration> {
        self.redelivers_within
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.inner.subscribe(subscription).await
    }
}

async fn start(
    payload_bytes_max: Option<usize>,
    redelivers_within: Option<Duration>,
    change: fn(&mut Settings),
) -> Result<(), String> {
    let transport = Limited { inner: MemoryTransport::new(), payload_bytes_max, redelivers_within };
    let builder = Runtime::builder(MemoryStore::new()).transport(transport).settings(change);
    let runtime = builder.start().await.map_err(|error| error.to_string())?;
    runtime.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn an_undo_of_two_payloads_must_fit_into_a_message() {
    let settings: fn(&mut Settings) = |settings| settings.payload_bytes_max = 1_000;
    start(None, None, settings).await.expect("without a limit");
    start(Some(2_064), None, settings).await.expect("it just fits");
    let refusal = start(Some(2_063), None, settings).await.expect_err("an undo may be longer");
    for part in [
        "payload_bytes_max is 1000",
        "may have 2064 bytes",
        "`limited` takes payloads of up to 2063",
        "make payload_bytes_max at most 999",
        "let the transport take at least 2064 bytes",
    ] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
}

#[tokio::test]
async fn ids_are_kept_for_longer_than_the_transport_delivers() {
    let settings: fn(&mut Settings) = |settings| settings.retention = Duration::from_hours(24 * 7);
    let week = Duration::from_hours(24 * 7);
    let refusal = start(None, Some(week), settings).await.expect_err("clocks differ");
    assert!(refusal.contains("retention is 7 days"), "{refusal}");
    assert!(refusal.contains("keep message ids for at least 7 days 5 min"), "{refusal}");
    start(None, Some(week.saturating_sub(Duration::from_mins(5))), settings).await.expect("long enough");
}
