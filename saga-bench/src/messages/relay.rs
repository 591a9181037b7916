//! The relay: what was committed before it starts, until all of it is confirmed and gone.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use saga_core::Runtime;
use saga_core::store::Outbox as _;
use saga_core::transport::Transport;
use saga_postgres::PostgresStore;

use super::counting::Counting;
use super::outbox::fill;
use crate::clock::Stopwatch;

/// How often the outbox is looked at when everything was confirmed.
const POLL: Duration = Duration::from_millis(10);

/// Commits so many messages, so many of them under one ordering key, and returns how many the relay sent a second.
pub(crate) async fn run(
    store: PostgresStore,
    transport: Arc<dyn Transport>,
    messages: u32,
    per_key: u32,
    bytes: usize,
) -> Result<f64> {
    fill(&store, messages, per_key, bytes).await?;
    let transport = Counting::new(transport);
    let watch = Stopwatch::started();
    let runtime = Runtime::builder(store.clone()).transport(transport.clone()).start().await?;
    let refused = transport.confirmed(messages).await;
    let took = watch.elapsed();
    ensure!(refused == 0, "the transport refused {refused} messages");
    // The last of them are deleted just after they were confirmed.
    while store.depth().await?.rows > 0 {
        tokio::time::sleep(POLL).await;
    }
    runtime.shutdown().await;
    Ok(f64::from(messages) / took.as_secs_f64())
}
