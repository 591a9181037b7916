//! Receiving what lies there: a process that comes back and finds messages.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use saga_core::transport::{Incoming, Settlement, Transport};

use super::brokers::Place;
use crate::clock::Stopwatch;
use crate::messages::{CALL, subscription, without_outbox};

/// Receives and accepts so many messages that were sent while their receiver was away. Returns how many a second, from the first delivery on:
/// how long a broker takes to find that a receiver is back is a time-out of its own.
pub(super) async fn run(place: &Place, messages: u32, bytes: usize) -> Result<f64> {
    let transport = place.connect().await?;
    // The subscription outlives its first receiver.
    drop(transport.subscribe(subscription(1)).await?);
    if place.sends_when_accepted() {
        let (sender, mut incoming) = (place.connect().await?, transport.subscribe(subscription(CALL as usize)).await?);
        let sending = tokio::spawn(async move { without_outbox(&*sender, messages, bytes).await });
        let rate = take(&mut *incoming, messages).await?;
        sending.await??;
        return Ok(rate);
    }
    drop(transport);
    without_outbox(&*place.connect().await?, messages, bytes).await?;
    let transport = place.connect().await?;
    take(&mut *transport.subscribe(subscription(CALL as usize)).await?, messages).await
}

/// Receives and accepts without an end.
pub(super) async fn drain(transport: Arc<dyn Transport>) -> Result<()> {
    let mut incoming = transport.subscribe(subscription(CALL as usize)).await?;
    loop {
        accept(&mut *incoming).await?;
    }
}

async fn accept(incoming: &mut dyn Incoming) -> Result<u32> {
    let deliveries = incoming.receive(CALL as usize).await?;
    let settled: Vec<_> = deliveries.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
    incoming.settle(&settled).await?;
    u32::try_from(settled.len()).context("fewer than were asked for")
}

async fn take(incoming: &mut dyn Incoming, messages: u32) -> Result<f64> {
    let (mut came, mut watch) = (0, None);
    loop {
        let count = accept(incoming).await?;
        match &watch {
            None => watch = Some((Stopwatch::started(), count)),
            Some((watch, before)) if came + count >= messages => {
                return Ok(f64::from(came + count - before) / watch.elapsed().as_secs_f64());
            }
            Some(_) => {}
        }
        came += count;
    }
}
