//! A broker that never loses what it has accepted, and does everything else that brokers do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::env::Environment;
use saga_core::transport::{
    Delivery, Incoming, Message, MessageKind, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};
use saga_testkit::sim::Random;
use saga_testkit::sim::executor::SimEnvironment;
use tokio::sync::Notify;

use super::schedule::Plant;

/// How late a message may come.
const LATE_MAX_MILLIS: u64 = 9_000;

#[derive(Clone)]
pub(crate) struct Broker {
    state: Arc<Mutex<State>>,
    filled: Arc<Notify>,
    world: SimEnvironment,
    /// A mistake that is made on purpose.
    plant: Option<Plant>,
}

pub(crate) struct State {
    random: Random,
    topics: BTreeMap<String, BTreeSet<String>>,
    waiting: BTreeMap<String, Vec<Message>>,
    /// Copies that are on their way, wait, or are received and not settled.
    under_way: u64,
    is_calm: bool,
    /// Which orders each receiver has seen: only a mistake that is made on purpose looks at them.
    seen: BTreeSet<(String, String)>,
    /// The events that were accepted: of which saga, and which.
    pub(crate) told: BTreeSet<(String, String)>,
    pub(crate) doubled: u64,
    pub(crate) late: u64,
}

impl Broker {
    pub(crate) fn new(world: SimEnvironment, random: Random, plant: Option<Plant>) -> Self {
        let state = State {
            random,
            topics: BTreeMap::new(),
            waiting: BTreeMap::new(),
            under_way: 0,
            is_calm: false,
            seen: BTreeSet::new(),
            told: BTreeSet::new(),
            doubled: 0,
            late: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), filled: Arc::new(Notify::new()), world, plant }
    }

    pub(crate) fn calm_down(&self) {
        self.lock().is_calm = true;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().under_way == 0
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Whether something happens that happens so often, while the world is wild.
    pub(crate) fn happens(&self, per_mille: u32) -> bool {
        let mut state = self.lock();
        !state.is_calm && state.random.per_mille(per_mille)
    }

    fn accept(&self, message: &Message) -> bool {
        if message.kind == MessageKind::Event {
            let key = message.headers.saga_key.clone().unwrap_or_else(|| message.key.clone());
            self.lock().told.insert((key, message.event_type.clone()));
        }
        let takes =
            |(name, topics): (&String, &BTreeSet<String>)| topics.contains(&message.topic).then(|| name.clone());
        let receivers: Vec<String> = self.lock().topics.iter().filter_map(takes).collect();
        for taker in &receivers {
            let copies = 1 + u32::from(self.happens(250));
            self.lock().doubled += u64::from(copies) - 1;
            for _ in 0..copies {
                self.send(taker, message.clone());
            }
        }
        !receivers.is_empty() || message.kind == MessageKind::Event
    }

    fn send(&self, taker: &str, message: Message) {
        self.lock().under_way += 1;
        if !self.happens(300) {
            return self.put(taker, message);
        }
        let late = {
            let mut state = self.lock();
            state.late += 1;
            Duration::from_millis(state.random.below(LATE_MAX_MILLIS))
        };
        let (broker, taker) = (self.clone(), taker.to_owned());
        self.world.spawn(Box::pin(async move {
            broker.world.sleep(late).await;
            broker.put(&taker, message);
        }));
    }

    fn put(&self, taker: &str, message: Message) {
        self.lock().waiting.entry(taker.to_owned()).or_default().push(message);
        self.filled.notify_waiters();
    }
}

#[async_trait]
impl Transport for Broker {
    fn name(&self) -> &'static str {
        "simulated"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let mut answers = Vec::new();
        for message in messages {
            let error = |kind| Err(TransportError::new(kind, "publish", "a bad day"));
            let (is_refused, is_lost) = (self.happens(50), self.happens(50));
            answers.push(if is_refused {
                error(TransportErrorKind::Unavailable)
            } else if !self.accept(&message) {
                error(TransportErrorKind::NoRoute)
            } else if is_lost {
                error(TransportErrorKind::Unknown)
            } else {
                Ok(())
            });
        }
        answers
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.lock().topics.entry(subscription.name.clone()).or_default().extend(subscription.topics);
        Ok(Box::new(Receiver { broker: self.clone(), name: subscription.name, tags: 0, unsettled: BTreeMap::new() }))
    }
}

struct Receiver {
    broker: Broker,
    name: String,
    tags: u64,
    unsettled: BTreeMap<u64, Message>,
}

impl Receiver {
    fn take(&mut self, limit: usize) -> Vec<Delivery> {
        let mut state = self.broker.lock();
        let state = &mut *state;
        let Some(waiting) = state.waiting.get_mut(&self.name) else { return Vec::new() };
        let most = usize::try_from(state.random.between(1, 4)).unwrap().min(limit);
        let mut taken = Vec::new();
        while !waiting.is_empty() && taken.len() < most {
            let at = usize::try_from(state.random.below(waiting.len() as u64)).unwrap();
            let message = waiting.swap_remove(at);
            if self.broker.plant == Some(Plant::Forgets) && !state.is_calm && state.random.per_mille(100) {
                state.under_way -= 1;
                continue;
            }
            if self.broker.plant == Some(Plant::NoTombstone) && !is_about_seen(&mut state.seen, &self.name, &message) {
                state.under_way -= 1;
                continue;
            }
            self.tags += 1;
            let redelivered = state.random.per_mille(200);
            self.unsettled.insert(self.tags, message.clone());
            taken.push(Delivery { tag: self.tags, redelivered, message: Ok(message), dead_letter: None, user: None });
        }
        taken
    }

    fn settle_now(&mut self, settled: &[(u64, Settlement)]) {
        for (tag, settlement) in settled {
            let Some(message) = self.unsettled.remove(tag) else { continue };
            match settlement {
                Settlement::Accept => self.broker.lock().under_way -= 1,
                Settlement::Reject => self.broker.put(&self.name, message),
            }
        }
    }
}

/// Whether a receiver has seen the order that a message is about, or sees it now.
fn is_about_seen(seen: &mut BTreeSet<(String, String)>, receiver: &str, message: &Message) -> bool {
    let key = message.headers.saga_key.as_ref().unwrap_or(&message.key);
    let about = (receiver.to_owned(), key.clone());
    message.kind != MessageKind::Event
        || seen.contains(&about)
        || (message.event_type == "order-placed" && seen.insert(about))
        || !matches!(message.event_type.as_str(), "stock-rejected" | "order-expired")
}

#[async_trait]
impl Incoming for Receiver {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        let filled = Arc::clone(&self.broker.filled);
        loop {
            let some = filled.notified();
            let taken = self.take(limit.max(1));
            if !taken.is_empty() {
                return Ok(taken);
            }
            some.await;
        }
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        if self.broker.happens(50) {
            // What was not settled comes again, when this receiver is dropped.
            return Err(TransportError::new(TransportErrorKind::Unavailable, "settle", "a bad day"));
        }
        self.settle_now(settled);
        Ok(())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        for message in std::mem::take(&mut self.unsettled).into_values() {
            self.broker.put(&self.name, message);
        }
    }
}
