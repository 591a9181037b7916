//! What stands in the log, whoever listens to it: of messages never the content.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use saga_amqp::{AmqpOptions, AmqpTransport};
use saga_core::transport::{Message, MessageKind, Transport as _, TransportErrorKind};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use self::support::messages::addressed;
use self::support::{Broker, unique_prefix};

/// Keeps all events of all targets as texts. Frame by frame the library prints what it reads only as a trace.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG || metadata.target() == "lapin::io_loop"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(format!("{}: ", event.metadata().target()));
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_no_queue_takes_is_not_printed() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let options = AmqpOptions::new(Broker::shared().url).prefix(unique_prefix());
    let transport = AmqpTransport::connect_with(options).await.unwrap();
    let secret = Message { payload: b"card 4000-1234".to_vec(), ..addressed(MessageKind::Command, 1) };
    for _ in 0..3 {
        let answers = transport.publish(vec![secret.clone()]).await;
        let error = answers[0].as_ref().expect_err("nobody takes it");
        assert_eq!(error.kind(), TransportErrorKind::NoRoute, "{error}");
        assert!(error.to_string().contains("start the service that receives it"), "it says what helps: {error}");
    }
    let said = log.0.lock().unwrap().clone();
    assert!(said.iter().any(|text| text.starts_with("lapin::")), "the library's other events are heard");
    let bytes = format!("{:?}", secret.payload);
    let tells = |text: &&String| text.contains(bytes.trim_matches(['[', ']'])) || text.contains("card 4000");
    assert_eq!(said.iter().filter(tells).collect::<Vec<_>>(), Vec::<&String>::new());
}
