use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use saga_core::store::MessageId;
use saga_core::transport::{
    Delivery, Incoming, Message, MessageKind, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};
use tokio::sync::Notify;
use uuid::Uuid;

use super::super::life::Life;

/// What makes another message of a copy.
const COPY: u128 = 0x636f_7079 << 96;

/// Stands between the services: what they tell is held back until it is handed out.
#[derive(Debug, Clone, Default)]
pub(super) struct Broker {
    state: Arc<Mutex<State>>,
    filled: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    takers: BTreeMap<String, BTreeSet<String>>,
    /// What is held back, and for whom.
    held: VecDeque<(String, Message)>,
    /// What was handed out once.
    handed_out: Vec<(String, Message)>,
    /// What was handed out and not received yet.
    waiting: BTreeMap<String, VecDeque<Message>>,
    /// How much was handed out and is not settled.
    open: u64,
    /// How often anything moved.
    moves: u64,
}

/// How an event on its way is called.
fn label(taker: &str, message: &Message) -> String {
    format!("{} to {taker}", message.event_type)
}

/// How the second arrival of one is called.
pub(super) fn once_more(label: &str) -> String {
    format!("{label}, once more")
}

impl Broker {
    /// The events that are held back, in the order in which they were told.
    pub(super) fn held(&self) -> Vec<String> {
        self.lock().held.iter().map(|(taker, message)| label(taker, message)).collect()
    }

    /// The events that were handed out.
    pub(super) fn handed_out(&self) -> Vec<String> {
        self.lock().handed_out.iter().map(|(taker, message)| label(taker, message)).collect()
    }

    /// Hands out what is called so; says whether there is such a thing.
    pub(super) fn hand_out(&self, wanted: &str) -> bool {
        let mut state = self.lock();
        let copy = state.handed_out.iter().find(|(taker, message)| once_more(&label(taker, message)) == wanted);
        let next = if let Some((taker, message)) = copy.cloned() {
            let id = MessageId(Uuid::from_u128(message.id.0.as_u128() ^ COPY));
            (taker, Message { id, ..message })
        } else {
            let at = state.held.iter().position(|(taker, message)| label(taker, message) == wanted);
            let Some(next) = at.and_then(|at| state.held.remove(at)) else { return false };
            state.handed_out.push(next.clone());
            next
        };
        state.put(next.0, next.1);
        drop(state);
        self.filled.notify_waiters();
        true
    }

    /// Whether nothing is on its way but what is held back, and how often anything moved so far.
    pub(super) fn stands_still(&self) -> (bool, u64) {
        let state = self.lock();
        (state.open == 0, state.moves)
    }

    /// Takes a message that is published.
    pub(super) fn accept(&self, message: &Message) -> bool {
        let mut state = self.lock();
        state.moves += 1;
        let takes = state.takers.iter().filter(|(_, topics)| topics.contains(&message.topic));
        let names: Vec<String> = takes.map(|(name, _)| name.clone()).collect();
        for taker in &names {
            match message.kind {
                MessageKind::Event => state.held.push_back((taker.clone(), message.clone())),
                _ => state.put(taker.clone(), message.clone()),
            }
        }
        drop(state);
        self.filled.notify_waiters();
        !names.is_empty() || message.kind == MessageKind::Event
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put(&mut self, taker: String, message: Message) {
        self.moves += 1;
        self.open += 1;
        self.waiting.entry(taker).or_default().push_back(message);
    }
}

/// The broker as one life of a process meets it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) broker: Broker,
    pub(super) life: Arc<Life>,
}

#[async_trait]
impl Transport for Line {
    fn name(&self) -> &'static str {
        "explored"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let mut answers = Vec::new();
        for message in messages {
            if message.kind == MessageKind::Event {
                self.life.pass(&format!("before {} is told", message.event_type)).await;
            }
            self.life.live().await;
            let is_routed = self.broker.accept(&message);
            if message.kind == MessageKind::Event {
                self.life.pass(&format!("behind {} is told", message.event_type)).await;
            }
            let no_route = || TransportError::new(TransportErrorKind::NoRoute, "publish", "there is no subscriber");
            answers.push(is_routed.then_some(()).ok_or_else(no_route));
        }
        answers
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.life.live().await;
        let Subscription { name, topics, .. } = subscription;
        self.broker.lock().takers.entry(name.clone()).or_default().extend(topics);
        let (broker, life) = (self.broker.clone(), Arc::clone(&self.life));
        Ok(Box::new(Receiver { broker, life, name, tags: 0, unsettled: BTreeMap::new() }))
    }
}

struct Receiver {
    broker: Broker,
    life: Arc<Life>,
    name: String,
    tags: u64,
    unsettled: BTreeMap<u64, Message>,
}

impl Receiver {
    fn take(&mut self, limit: usize) -> Vec<Delivery> {
        let mut state = self.broker.lock();
        let waiting = state.waiting.entry(self.name.clone()).or_default();
        let count = waiting.len().min(limit);
        let taken: Vec<Message> = waiting.drain(..count).collect();
        let deliver = |message: Message| {
            self.tags += 1;
            self.unsettled.insert(self.tags, message.clone());
            Delivery { tag: self.tags, redelivered: false, message: Ok(message), dead_letter: None, user: None }
        };
        taken.into_iter().map(deliver).collect()
    }
}

#[async_trait]
impl Incoming for Receiver {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        let filled = Arc::clone(&self.broker.filled);
        loop {
            let some = filled.notified();
            self.life.live().await;
            let taken = self.take(limit.max(1));
            if !taken.is_empty() {
                return Ok(taken);
            }
            some.await;
        }
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        self.life.live().await;
        for (tag, settlement) in settled {
            let Some(message) = self.unsettled.remove(tag) else { continue };
            let mut state = self.broker.lock();
            state.moves += 1;
            state.open -= 1;
            if *settlement == Settlement::Reject {
                state.put(self.name.clone(), message);
                drop(state);
                self.broker.filled.notify_waiters();
            }
        }
        Ok(())
    }
}

impl Drop for Receiver {
    /// What a process had received when it died comes again.
    fn drop(&mut self) {
        let unsettled = std::mem::take(&mut self.unsettled);
        let mut state = self.broker.lock();
        for message in unsettled.into_values() {
            state.open -= 1;
            state.put(self.name.clone(), message);
        }
        drop(state);
        self.broker.filled.notify_waiters();
    }
}
