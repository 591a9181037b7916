//! A transport that does to messages what networks do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use saga_core::transport::{
    Incoming, Message, MessageKind, Subscription, Transport, TransportError, TransportErrorKind, service_topic,
};

/// What becomes of messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meddling {
    /// How often each is sent beside the first time.
    pub(crate) copies: usize,
    /// The next message of each of these kinds is confirmed and lost, in this order.
    pub(crate) lost: Vec<MessageKind>,
    /// Messages of these kinds are refused.
    pub(crate) refuses: Vec<MessageKind>,
}

#[derive(Clone)]
pub(crate) struct Meddler {
    pub(crate) inner: Arc<dyn Transport>,
    meddling: Arc<Mutex<Meddling>>,
    lost: Arc<Mutex<usize>>,
    /// What commands brought, by tenant, saga and step, and the undos that brought something else.
    inputs: Arc<Mutex<BTreeMap<[String; 3], String>>>,
    strange: Arc<Mutex<Vec<String>>>,
    /// The topics of hosts that were answered which sagas are closed.
    answered: Arc<Mutex<BTreeSet<String>>>,
    /// The topics of services that a host asked which sagas are closed.
    asked: Arc<Mutex<BTreeSet<String>>>,
}

/// What an undo brings of its step.
#[derive(serde::Deserialize)]
struct Undo<'a> {
    #[serde(borrow)]
    input: &'a serde_json::value::RawValue,
}

impl Meddler {
    pub(crate) fn new(inner: Arc<dyn Transport>, meddling: Meddling) -> Self {
        let meddling = Arc::new(Mutex::new(meddling));
        Self {
            inner,
            meddling,
            lost: Arc::default(),
            inputs: Arc::default(),
            strange: Arc::default(),
            answered: Arc::default(),
            asked: Arc::default(),
        }
    }

    /// The undos that brought another input than their commands.
    pub(crate) fn strange_undos(&self) -> Vec<String> {
        self.strange.lock().unwrap().clone()
    }

    /// Whether a host was answered that a saga is closed.
    pub(crate) fn has_answered(&self, host: &str) -> bool {
        self.answered.lock().unwrap().contains(&service_topic(host))
    }

    /// Whether a service was asked which sagas are closed.
    pub(crate) fn has_asked(&self, service: &str) -> bool {
        self.asked.lock().unwrap().contains(&service_topic(service))
    }

    fn note_question_or_answer(&self, message: &Message) {
        let text = String::from_utf8_lossy(&message.payload);
        for (member, topics) in [("\"asked_at\"", &self.answered), ("\"asked\"", &self.asked)] {
            if message.kind == MessageKind::Closed && text.contains(member) {
                topics.lock().unwrap().insert(message.topic.clone());
            }
        }
    }

    fn compare(&self, message: &Message) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let of = [&message.headers.saga_key, &message.headers.step].map(|header| header.clone().unwrap_or_default());
        let [saga, step] = of;
        let of = [message.tenant.to_string(), saga, step];
        match message.kind {
            MessageKind::Command => drop(self.inputs.lock().unwrap().insert(of, text(&message.payload))),
            MessageKind::Undo => {
                let undo = serde_json::from_slice::<Undo<'_>>(&message.payload);
                let input = undo.map(|undo| undo.input.get().to_owned()).unwrap_or_default();
                if self.inputs.lock().unwrap().get(&of).is_some_and(|given| *given != input) {
                    self.strange.lock().unwrap().push(format!("{of:?}: {input}"));
                }
            }
            _ => {}
        }
    }

    pub(crate) fn lost_so_far(&self) -> usize {
        *self.lost.lock().unwrap()
    }

    fn loses(&self, message: &Message) -> bool {
        let mut meddling = self.meddling.lock().unwrap();
        let is_lost = meddling.lost.first() == Some(&message.kind);
        if is_lost {
            meddling.lost.remove(0);
            *self.lost.lock().unwrap() += 1;
        }
        is_lost
    }

    async fn publish_one(&self, message: Message) -> Result<(), TransportError> {
        self.compare(&message);
        let (copies, refuses) = {
            let meddling = self.meddling.lock().unwrap();
            (meddling.copies, meddling.refuses.contains(&message.kind))
        };
        if refuses {
            return Err(TransportError::new(TransportErrorKind::Refused, "publish", "the test refuses it"));
        }
        if self.loses(&message) {
            return Ok(());
        }
        self.note_question_or_answer(&message);
        let all = vec![message; copies + 1];
        self.inner.publish(all).await.into_iter().collect()
    }
}

#[async_trait]
impl Transport for Meddler {
    fn name(&self) -> &'static str {
        "meddler"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let mut answers = Vec::new();
        for message in messages {
            answers.push(self.publish_one(message).await);
        }
        answers
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.inner.subscribe(subscription).await
    }

    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        self.inner.dead_letters(subscription, prefetch).await
    }
}
