//! The suite that every transport is held to, on moto: each check has queues and topics of its own.
#![allow(clippy::expect_used, reason = "a suite fails by panicking")]

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use saga_servers::MotoServer;
use saga_sqs::SqsTransport;
use saga_testkit::{TransportHarness, transport_main};

use self::support::{messages, options, server};

/// How often a rejected message comes again: so few that the suite need not reject 20 times.
const REJECTIONS_MAX: u32 = 3;

struct Sqs {
    server: MotoServer,
    transports: AtomicU32,
}

impl TransportHarness for Sqs {
    type Transport = SqsTransport;

    async fn fresh(&self) -> SqsTransport {
        let number = self.transports.fetch_add(1, Ordering::Relaxed);
        let options = options(&self.server, &format!("t{number}")).rejections_max(REJECTIONS_MAX);
        SqsTransport::connect_with(options).await.expect("the server can be reached")
    }

    async fn beside(&self, transport: &SqsTransport) -> SqsTransport {
        SqsTransport::connect_with(transport.options().clone()).await.expect("the server can be reached")
    }

    fn rejections_max(&self) -> u32 {
        REJECTIONS_MAX
    }

    async fn given_up(&self, transport: &SqsTransport) -> Option<Vec<Vec<u8>>> {
        use saga_core::transport::Transport as _;
        let mut dead = transport.dead_letters("a", 10).await.expect("dead letters can be received")?;
        let letters = messages::receive(&mut dead, 1).await;
        Some(letters.into_iter().filter_map(|letter| Some(letter.message.ok()?.payload)).collect())
    }

    /// SQS hands the messages of a group to one receiver at a time.
    fn delivers_behind_unsettled(&self) -> bool {
        false
    }

    fn arrival(&self) -> Duration {
        // Another receiver's request may have to end first, and what it was given go back.
        Duration::from_secs(20)
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(400)
    }
}

transport_main!(Sqs { server: server(), transports: AtomicU32::new(0) });
