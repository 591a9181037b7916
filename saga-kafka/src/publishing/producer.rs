use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer as _, ProducerContext, ThreadedProducer};
use saga_core::transport::{TransportError, TransportErrorKind};
use tokio::sync::oneshot;

use crate::error::failed;
use crate::health::Reach;
use crate::options::KafkaOptions;
use crate::wire::wire::Outgoing;
use crate::{config, error, library_log, tls};

pub(crate) type Answer = Result<(), RDKafkaErrorCode>;

/// An idempotent producer, and the thread that serves it.
pub(crate) struct Producer {
    client: Option<ThreadedProducer<Context>>,
}

/// What librdkafka calls.
pub(crate) struct Context {
    reach: Reach,
    /// Asks to look whether the cluster can be reached.
    doubts: SyncSender<()>,
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        library_log::tell(level, facility, message);
        // A connection that the broker closes at once is a line of the log only.
        if let Some(hint) = tls::hint(message) {
            let line = message.split_once("]: ").map_or(message, |(_thread, line)| line);
            self.reach.failed(format!("cannot reach the cluster: {hint}: {line}"));
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        if !(error::is_summary(&error) && self.reach.has_failed()) {
            self.reach.failed(error::describe_connection("reach the cluster", &error, reason));
        }
        // Also idle connections that the brokers closed are reported so; a question tells.
        _ = self.doubts.try_send(());
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = Box<oneshot::Sender<Answer>>;

    fn delivery(&self, result: &DeliveryResult<'_>, answer: Self::DeliveryOpaque) {
        let outcome = match result {
            Ok(_) => Ok(()),
            Err((error, _)) => Err(error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail)),
        };
        // A caller that is gone needs no answer.
        _ = answer.send(outcome);
    }
}

impl Producer {
    pub(crate) fn create(
        options: &KafkaOptions,
        reach: Reach,
        doubts: SyncSender<()>,
    ) -> Result<Arc<Self>, TransportError> {
        let created = config::producer(options).create_with_context(Context { reach, doubts });
        let client = created.map_err(|error| failed("connect", "connect to the cluster", &error))?;
        Ok(Arc::new(Self { client: Some(client) }))
    }

    /// The client, which is there until the producer is dropped.
    pub(crate) fn client(&self) -> Option<&ThreadedProducer<Context>> {
        self.client.as_ref()
    }

    /// Hands a message to the library; the answer comes later.
    pub(crate) fn send(
        &self,
        message: &Outgoing,
        partition: i32,
    ) -> Result<oneshot::Receiver<Answer>, RDKafkaErrorCode> {
        let Some(client) = self.client() else { return Err(RDKafkaErrorCode::DestroyBroker) };
        let (sender, answer) = oneshot::channel();
        let mut headers = OwnedHeaders::new_with_capacity(message.headers.len());
        for (name, value) in &message.headers {
            headers = headers.insert(Header { key: name, value: value.as_ref() });
        }
        let mut record: BaseRecord<'_, [u8], [u8], _> =
            BaseRecord::with_opaque_to(&message.topic, Box::new(sender)).partition(partition).headers(headers);
        if let Some(key) = &message.key {
            record = record.key(key);
        }
        if let Some(payload) = &message.payload {
            record = record.payload(payload);
        }
        match client.send(record) {
            Ok(()) => Ok(answer),
            Err((error, _)) => Err(error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail)),
        }
    }

    /// Whether the library says that it cannot send with this producer any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.client().is_some_and(|client| client.client().fatal_error().is_some())
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        // The library waits for its threads, and for what is under way.
        let client = self.client.take();
        _ = std::thread::Builder::new().name("saga-kafka closing".to_owned()).spawn(move || drop(client));
    }
}

/// The error of a message whose answer was lost.
pub(crate) fn lost() -> TransportError {
    let detail = "the outcome is unknown, since the producer ended; the message is sent again";
    TransportError::new(TransportErrorKind::Unknown, "publish", detail)
}
