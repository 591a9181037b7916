//! SQS and SNS that answer as a test says: for what moto lets pass, and for what it never does.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use aws_sdk_sns::operation::create_topic::CreateTopicOutput;
use aws_sdk_sns::operation::subscribe::SubscribeOutput;
use aws_sdk_sqs::error::ErrorMetadata;
use aws_sdk_sqs::operation::get_queue_attributes::GetQueueAttributesOutput;
use aws_sdk_sqs::operation::get_queue_url::GetQueueUrlOutput;
use aws_sdk_sqs::operation::list_queues::ListQueuesOutput;
use aws_smithy_mocks::{Rule, RuleMode, mock, mock_client};
use saga_core::store::MessageId;
use saga_core::transport::{Message, MessageKind, TransportError, TransportErrorKind};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::clients::Clients;
use crate::options::SqsOptions;
use crate::transport::SqsTransport;

/// The secret of all tests.
pub(crate) const SECRET: &str = "hunter2/secret";

/// A transport over clients that answer by these rules: the first rule that matches a request answers it. All queues exist.
pub(crate) fn transport(sqs: &[&Rule], sns: &[&Rule]) -> SqsTransport {
    let url = mock!(aws_sdk_sqs::Client::get_queue_url)
        .then_compute_output(|asked| GetQueueUrlOutput::builder().queue_url(asked.queue_name().unwrap()).build());
    let attributes = mock!(aws_sdk_sqs::Client::get_queue_attributes).then_output(|| {
        let arn = aws_sdk_sqs::types::QueueAttributeName::QueueArn;
        GetQueueAttributesOutput::builder().attributes(arn, "arn:aws:sqs:r:1:q.fifo").build()
    });
    let list = mock!(aws_sdk_sqs::Client::list_queues).then_output(|| ListQueuesOutput::builder().build());
    let policy = mock!(aws_sdk_sqs::Client::set_queue_attributes)
        .then_output(|| aws_sdk_sqs::operation::set_queue_attributes::SetQueueAttributesOutput::builder().build());
    let topic = mock!(aws_sdk_sns::Client::create_topic).then_compute_output(|asked| {
        CreateTopicOutput::builder().topic_arn(format!("arn:aws:sns:r:1:{}", asked.name().unwrap())).build()
    });
    let subscribe =
        mock!(aws_sdk_sns::Client::subscribe).then_output(|| SubscribeOutput::builder().subscription_arn("s").build());
    let sqs: Vec<&Rule> = sqs.iter().copied().chain([&url, &attributes, &list, &policy]).collect();
    let sns: Vec<&Rule> = sns.iter().copied().chain([&topic, &subscribe]).collect();
    let clients = Clients {
        sqs: mock_client!(aws_sdk_sqs, RuleMode::MatchAny, sqs, |config| {
            config.retry_config(aws_sdk_sqs::config::retry::RetryConfig::disabled())
        }),
        sns: mock_client!(aws_sdk_sns, RuleMode::MatchAny, sns, |config| {
            config.retry_config(aws_sdk_sns::config::retry::RetryConfig::disabled())
        }),
    };
    let options = SqsOptions::new("us-east-1").access_key("AKIDEXAMPLE", SECRET).prefix("shop");
    SqsTransport::over(clients, options).unwrap()
}

/// What an error of the service says of itself.
pub(crate) fn meta(code: &str, message: &str) -> ErrorMetadata {
    ErrorMetadata::builder().code(code).message(message).build()
}

/// A command with this number and this key, for the service `payments`.
pub(crate) fn command(number: u32, key: &str) -> Message {
    Message {
        key: key.into(),
        event_type: "charge".into(),
        payload: number.to_string().into_bytes(),
        ..Message::new(MessageId(uuid::Uuid::from_u128(number.into())), MessageKind::Command, "service:payments")
    }
}

/// An event with this number.
pub(crate) fn event(number: u32) -> Message {
    Message { kind: MessageKind::Event, topic: "orders".into(), ..command(number, "k") }
}

pub(crate) fn kinds(answers: &[Result<(), TransportError>]) -> Vec<Option<TransportErrorKind>> {
    answers.iter().map(|answer| answer.as_ref().err().map(TransportError::kind)).collect()
}

/// All that is logged, by this crate and the libraries.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Log {
    /// The messages of the warnings.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let said = self.0.lock().unwrap();
        said.iter().filter(|(level, _)| *level == Level::WARN).map(|(_, text)| text.clone()).collect()
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.0.lock().unwrap().iter().any(|(_, said)| said.contains(text))
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut text = Text(String::new());
        attributes.record(&mut text);
        self.0.lock().unwrap().push((Level::TRACE, text.0));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
