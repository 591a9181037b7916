//! What one transport reached, and all of them side by side.

use std::sync::Arc;

use anyhow::Result;
use saga_postgres::PostgresStore;
use saga_servers::PostgresServer;

use super::brokers::{Brokers, Kind, Place};
use super::{bare_kafka, receiving};
use crate::figures::{Figures, percentile};
use crate::messages::receipt::{self, Committer};
use crate::messages::{relay, subscription, without_outbox};

/// What each contender does in a round.
pub(super) struct Load {
    pub(super) messages: u32,
    pub(super) bytes: usize,
    /// How many messages are timed one at a time.
    pub(super) receipts: u32,
}

/// The figures of one transport, one value a round.
pub(super) struct Measured {
    pub(super) kind: Kind,
    pub(super) relay: Figures,
    /// The transport without an outbox; not where a message counts as sent when it was received.
    pub(super) sending: Figures,
    pub(super) receiving: Figures,
    pub(super) half: Figures,
    pub(super) most: Figures,
    /// The bare client on the same broker, where there is one.
    pub(super) bare: Option<Bare>,
}

/// The figures of the bare client.
pub(super) struct Bare {
    pub(super) sending: Figures,
    pub(super) receiving: Figures,
    pub(super) half: Figures,
}

impl Measured {
    pub(super) fn of(kind: Kind, brokers: &Brokers) -> Self {
        let messages = || Figures::of_messages(kind.name());
        let milliseconds = || Figures::of_milliseconds(kind.name());
        let bare =
            brokers.kafka(kind).map(|_| Bare { sending: messages(), receiving: messages(), half: milliseconds() });
        let (half, most) = (milliseconds(), milliseconds());
        Self { kind, relay: messages(), sending: messages(), receiving: messages(), half, most, bare }
    }

    /// One round, on new databases and in new places of the brokers.
    pub(super) async fn measure(
        &mut self,
        postgres: &PostgresServer,
        brokers: &Brokers,
        load: &Load,
        round: u32,
    ) -> Result<()> {
        let (messages, bytes) = (load.messages / self.kind.share(), load.bytes);
        let name = |work: &str| format!("{work}_{}_{round}", self.kind as u8);
        let place = async |work: &str| brokers.place(self.kind, &name(work)).await;
        let store = async |work: &str| {
            let url = postgres.create_database(&name(work)).await?;
            anyhow::Ok([PostgresStore::connect(&url).await?, PostgresStore::connect(&url).await?])
        };
        if let (Some(kafka), Some(bare)) = (brokers.kafka(self.kind), &mut self.bare) {
            bare.sending.values.push(bare_kafka::publish(&kafka, &name("bare-relay"), messages, bytes).await?);
            bare.receiving.values.push(bare_kafka::receive(&kafka, &name("bare-receive"), messages, bytes).await?);
            let took = bare_kafka::receipts(&kafka, &name("bare-receipt"), load.receipts, bytes).await?;
            bare.half.values.push(percentile(&took, 0.5));
        }
        // A queue takes what is sent, as it does in a company.
        let connected = async |place: &Place| {
            let transport = place.connect().await?;
            drop(transport.subscribe(subscription(1)).await?);
            anyhow::Ok(transport)
        };
        let sent_to = place("relay").await?;
        let transport = connected(&sent_to).await?;
        let draining = sent_to.sends_when_accepted().then(|| tokio::spawn(receiving::drain(Arc::clone(&transport))));
        if draining.is_none() {
            let sender = connected(&place("sending").await?).await?;
            self.sending.values.push(without_outbox(&*sender, messages, bytes).await?);
        }
        let [relaying, _] = store("relay").await?;
        self.relay.values.push(relay::run(relaying, transport, messages, 1, bytes).await?);
        if let Some(draining) = draining {
            draining.abort();
        }
        self.receiving.values.push(receiving::run(&place("receive").await?, messages, bytes).await?);
        let timed = place("receipt").await?.connect().await?;
        let stores = store("receipt").await?;
        let took = receipt::run(stores, timed, Committer::SameProcess, load.receipts, bytes).await?;
        self.half.values.push(percentile(&took, 0.5));
        self.most.values.push(percentile(&took, 0.99));
        Ok(())
    }

    /// The relay, sending without an outbox and receiving, as shares of the bare client.
    pub(super) fn to_bare(&self) -> Option<[f64; 3]> {
        let Bare { sending, receiving, .. } = self.bare.as_ref()?;
        let sent = [&self.relay, &self.sending].map(|figures| figures.ratio_to(sending));
        Some([sent[0], sent[1], self.receiving.ratio_to(receiving)])
    }
}
