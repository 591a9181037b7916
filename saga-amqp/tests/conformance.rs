//! The suite that every transport is held to, on a broker: each check has exchanges and queues of its own.
#![allow(clippy::expect_used, reason = "a suite fails by panicking")]

mod support;

use std::time::Duration;

use saga_amqp::{AmqpOptions, AmqpTransport};
use saga_testkit::{TransportHarness, transport_main};

use self::support::{Broker, limit_queue, unique_prefix};

/// How often a rejected message comes again: the same for all, so that the suite need not reject 20 times.
const DELIVERY_LIMIT: u32 = 3;

struct Amqp(Broker);

impl Amqp {
    fn options(&self, prefix: String) -> AmqpOptions {
        AmqpOptions::new(&self.0.url).prefix(prefix).delivery_limit(DELIVERY_LIMIT)
    }
}

impl TransportHarness for Amqp {
    type Transport = AmqpTransport;

    async fn fresh(&self) -> AmqpTransport {
        AmqpTransport::connect_with(self.options(unique_prefix())).await.expect("the broker can be connected to")
    }

    async fn beside(&self, transport: &AmqpTransport) -> AmqpTransport {
        AmqpTransport::connect_with(transport.options().clone()).await.expect("the broker can be connected to")
    }

    fn rejections_max(&self) -> u32 {
        DELIVERY_LIMIT
    }

    async fn limit(&self, transport: &AmqpTransport, subscription: &str, messages: usize) -> bool {
        let queue = format!("{}{subscription}", transport.options().name_prefix());
        limit_queue(&Broker::management(), "%2F", &queue, messages).await;
        true
    }

    async fn given_up(&self, transport: &AmqpTransport) -> Option<Vec<Vec<u8>>> {
        Some(self.0.dead_letters(transport, "a").await.into_iter().map(|letter| letter.payload).collect())
    }

    fn user(&self) -> Option<String> {
        let (_, behind) = self.0.url.split_once("://")?;
        Some(behind.split_once(':')?.0.to_owned())
    }

    fn patience(&self) -> Duration {
        // A broker may take this long for what comes again.
        Duration::from_millis(400)
    }
}

transport_main!(Amqp(Broker::shared()));
