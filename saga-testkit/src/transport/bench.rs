use std::collections::BTreeMap;
use std::sync::Arc;

use saga_core::transport::{Delivery, Incoming, Message, Settlement, Subscription, Transport, TransportError};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::messages;
pub(crate) use super::messages::TOPIC;
use crate::check::{Failed, ensure};
use crate::harness::TransportHarness;

/// How many messages are unsettled at a time, where a check does not ask for fewer.
const PREFETCH: usize = 100;

/// A fresh transport and its harness.
pub struct Bench<H: TransportHarness> {
    pub(crate) harness: Arc<H>,
    pub(crate) transport: Arc<H::Transport>,
}

impl<H: TransportHarness> std::fmt::Debug for Bench<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("transport", &self.transport.name()).finish_non_exhaustive()
    }
}

impl<H: TransportHarness> Bench<H> {
    /// A fresh transport.
    ///
    /// # Cancel safety
    /// Dropping it leaves an unused transport behind.
    pub async fn fresh(harness: Arc<H>) -> Self {
        let transport = Arc::new(harness.fresh().await);
        Self { harness, transport }
    }

    pub(crate) async fn subscribe(&self, name: &str) -> Result<Receiver<H>, Failed> {
        self.subscribe_to(name, &[TOPIC], PREFETCH).await
    }

    pub(crate) async fn subscribe_to(
        &self,
        name: &str,
        topics: &[&str],
        prefetch: usize,
    ) -> Result<Receiver<H>, Failed> {
        self.subscribe_on(&self.transport, name, topics, prefetch).await
    }

    pub(crate) async fn subscribe_on(
        &self,
        transport: &H::Transport,
        name: &str,
        topics: &[&str],
        prefetch: usize,
    ) -> Result<Receiver<H>, Failed> {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        let incoming = transport.subscribe(Subscription { name: name.into(), topics, prefetch }).await?;
        Ok(Receiver { incoming, harness: Arc::clone(&self.harness) })
    }

    pub(crate) async fn dead_letters(&self, name: &str) -> Result<Receiver<H>, Failed> {
        let Some(incoming) = self.transport.dead_letters(name, PREFETCH).await? else {
            return Err(Failed("the transport gives messages up without a dead letter".into()));
        };
        Ok(Receiver { incoming, harness: Arc::clone(&self.harness) })
    }

    /// The key of a message that is to be delivered beside others: the same for all, unless the transport would hold them back.
    pub(crate) fn key(&self, number: u32) -> String {
        if self.harness.delivers_behind_unsettled() { "k".to_owned() } else { format!("k-{number}") }
    }

    /// Sends messages, while the check goes on: a transport may confirm them only when they were accepted.
    pub(crate) fn publish(&self, messages: Vec<Message>) -> Publishing {
        let transport = Arc::clone(&self.transport);
        Publishing(tokio::spawn(async move { transport.publish(messages).await }))
    }
}

/// A call of `publish` that is under way.
pub(crate) struct Publishing(JoinHandle<Vec<Result<(), TransportError>>>);

impl Publishing {
    /// Its answers.
    pub(crate) async fn answers(self) -> Result<Vec<Result<(), TransportError>>, Failed> {
        Ok(self.0.await?)
    }

    /// Every message must have been accepted.
    pub(crate) async fn confirmed(self) -> Result<(), Failed> {
        for answer in self.answers().await? {
            answer?;
        }
        Ok(())
    }
}

/// The message of a number under another key.
pub(crate) fn message(key: &str, number: u32) -> Message {
    Message { key: key.into(), ..messages::message(number) }
}

/// The numbers of messages, by their payloads.
pub(crate) fn numbers(deliveries: &[Delivery]) -> Vec<u32> {
    let number = |delivery: &Delivery| std::str::from_utf8(&delivery.message.as_ref().ok()?.payload).ok()?.parse().ok();
    deliveries.iter().filter_map(number).collect()
}

/// How often each number comes.
pub(crate) fn tally(numbers: impl IntoIterator<Item = u32>) -> BTreeMap<u32, usize> {
    let mut tally = BTreeMap::new();
    for number in numbers {
        *tally.entry(number).or_default() += 1;
    }
    tally
}

/// The receiving end of a check.
pub(crate) struct Receiver<H> {
    pub(crate) incoming: Box<dyn Incoming>,
    harness: Arc<H>,
}

impl<H: TransportHarness> Receiver<H> {
    /// Receives until so many messages have come, and leaves them unsettled.
    pub(crate) async fn gather(&mut self, count: usize) -> Result<Vec<Delivery>, Failed> {
        let mut gathered = Vec::new();
        while gathered.len() < count {
            let wait = self.harness.arrival();
            let Ok(came) = timeout(wait, self.incoming.receive(count - gathered.len())).await else {
                return Err(Failed(format!("expected {count} messages, got {:?} in {wait:?}", numbers(&gathered))));
            };
            let came = came?;
            ensure!(!came.is_empty(), "a receive answered no message");
            gathered.extend(came);
        }
        Ok(gathered)
    }

    /// Receives and accepts so many messages, each before the next.
    pub(crate) async fn accept_one_by_one(&mut self, count: usize) -> Result<Vec<Delivery>, Failed> {
        let mut accepted = Vec::new();
        for _ in 0..count {
            accepted.extend(self.accept(1).await?);
        }
        Ok(accepted)
    }

    /// Receives and accepts so many messages.
    pub(crate) async fn accept(&mut self, count: usize) -> Result<Vec<Delivery>, Failed> {
        let gathered = self.gather(count).await?;
        self.settle(&gathered, Settlement::Accept).await?;
        Ok(gathered)
    }

    pub(crate) async fn settle(&mut self, deliveries: &[Delivery], settlement: Settlement) -> Result<(), Failed> {
        let settled: Vec<(u64, Settlement)> = deliveries.iter().map(|delivery| (delivery.tag, settlement)).collect();
        Ok(self.incoming.settle(&settled).await?)
    }

    /// Nothing may come.
    pub(crate) async fn expect_nothing(&mut self) -> Result<(), Failed> {
        match timeout(self.harness.patience(), self.incoming.receive(PREFETCH)).await {
            Err(_) => Ok(()),
            Ok(came) => Err(Failed(format!("expected no message, got {:?}", numbers(&came?)))),
        }
    }
}
