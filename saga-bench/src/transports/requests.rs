//! What a message costs on Amazon SQS: the requests, which are what it is paid for. A mock says nothing about its speed.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use saga_core::transport::{Settlement, Transport as _};
use saga_postgres::PostgresStore;
use saga_servers::MotoServer;
use saga_sqs::{SqsOptions, SqsTransport};

use crate::messages::{CALL, relay, subscription};

/// So few, since moto looks through all for each.
pub(super) const MESSAGES: u32 = 500;

/// How many requests a message takes.
pub(super) struct Requests {
    pub(super) sending: f64,
    pub(super) receiving: f64,
    pub(super) deleting: f64,
}

/// Relays messages to a subscription, and receives and accepts them.
pub(super) async fn count(store: PostgresStore, bytes: usize) -> Result<Requests> {
    let moto = MotoServer::start().await.context("the benchmark needs a moto of its own")?;
    let options = SqsOptions::new("us-east-1").access_key("AKIDEXAMPLE", "secret").endpoint(moto.url()).prefix("bench");
    let subscribing = SqsTransport::connect_with(options.clone()).await?;
    drop(subscribing.subscribe(subscription(1)).await?);
    subscribing.close().await;
    let before = moto.requests()?;
    let transport = SqsTransport::connect_with(options.clone()).await?;
    relay::run(store, Arc::new(transport.clone()), MESSAGES, 1, bytes).await?;
    let mut incoming = transport.subscribe(subscription(CALL as usize)).await?;
    let mut open = MESSAGES as usize;
    while open > 0 {
        let came = incoming.receive(CALL as usize).await?;
        let settled: Vec<_> = came.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
        incoming.settle(&settled).await?;
        open = open.saturating_sub(came.len());
    }
    transport.close().await;
    let after = moto.requests()?;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand requests")]
    let of = |name: &str| {
        let count = |requests: &std::collections::BTreeMap<String, usize>| requests.get(name).copied().unwrap_or(0);
        (count(&after) - count(&before)) as f64 / f64::from(MESSAGES)
    };
    Ok(Requests {
        sending: of("publish_batch"),
        receiving: of("receive_message"),
        deleting: of("delete_message_batch"),
    })
}
