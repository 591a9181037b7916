use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use saga_core::transport::{TransportError, TransportErrorKind};

use crate::tls;

/// One sentence about a call that failed: what was being done, what the broker says, and what helps.
pub(crate) fn describe(doing: &str, error: &KafkaError) -> String {
    // Not the value that was refused: it may be a password.
    if let KafkaError::ClientConfig(_, _, name, _) = error {
        return format!("cannot {doing}: librdkafka does not accept the property {name}, or its value");
    }
    if let KafkaError::ClientCreation(said) = error {
        if let Some(name) = tls::unusable_file(said) {
            return format!(
                "cannot {doing}: librdkafka cannot use the file that {name} names; is it in PEM, does the key belong to the certificate, and is \
                 `ssl.key.password` right, if the key has one?"
            );
        }
        return format!(
            "cannot {doing}: librdkafka does not accept the properties together; check those set by `.property(..)`"
        );
    }
    match error.rdkafka_error_code() {
        Some(code) => match remedy(code) {
            Some(remedy) => format!("cannot {doing}: {}; {remedy}", said(code)),
            None => format!("cannot {doing}: {}", said(code)),
        },
        None => format!("cannot {doing}: {error}"),
    }
}

/// One sentence about a connection that failed, for which librdkafka gives a reason.
pub(crate) fn describe_connection(doing: &str, error: &KafkaError, reason: &str) -> String {
    if let Some(hint) = tls::hint(reason) {
        return format!("cannot {doing}: {hint}: {reason}");
    }
    format!("{}: {reason}", describe(doing, error))
}

/// Whether the error only says that those before it were about every broker.
pub(crate) fn is_summary(error: &KafkaError) -> bool {
    error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown)
}

/// The error of a call that failed before anything was handed to a broker.
pub(crate) fn failed(operation: &'static str, doing: &str, error: &KafkaError) -> TransportError {
    let is_config = matches!(error, KafkaError::ClientConfig(..) | KafkaError::ClientCreation(_));
    let is_lasting = is_config || error.rdkafka_error_code().is_some_and(is_lasting);
    let kind = if is_lasting { TransportErrorKind::Refused } else { TransportErrorKind::Unavailable };
    TransportError::new(kind, operation, describe(doing, error))
}

/// The error of something that did not come about in time.
pub(crate) fn too_late(operation: &'static str, doing: &str, limit: Duration) -> TransportError {
    let detail =
        format!("cannot {doing}: the cluster did not answer within {limit:?}; is it up, and are the addresses right?");
    TransportError::new(TransportErrorKind::Unavailable, operation, detail)
}

/// What became of a message that the client could not deliver.
pub(crate) fn not_delivered(topic: &str, is_addressed: bool, code: RDKafkaErrorCode) -> TransportError {
    use RDKafkaErrorCode as Code;
    let kind = match code {
        Code::MessageSizeTooLarge
        | Code::InvalidMessage
        | Code::InvalidMessageSize
        | Code::InvalidTimestamp
        | Code::InvalidRecord => TransportErrorKind::Refused,
        Code::UnknownTopic | Code::UnknownTopicOrPartition if is_addressed => TransportErrorKind::NoRoute,
        Code::UnknownTopic
        | Code::UnknownTopicOrPartition
        | Code::UnknownPartition
        | Code::TopicAuthorizationFailed
        | Code::NotEnoughReplicas
        | Code::PolicyViolation
        | Code::QueueFull => TransportErrorKind::Nacked,
        // Also those after which replicas may have it, or the client gave up while it was under way.
        _ => TransportErrorKind::Unknown,
    };
    let doing = format!("send to the topic {topic}");
    TransportError::new(kind, "publish", describe(&doing, &KafkaError::MessageProduction(code)))
}

/// Whether the topic is not there.
pub(crate) fn is_unknown_topic(code: RDKafkaErrorCode) -> bool {
    matches!(code, RDKafkaErrorCode::UnknownTopic | RDKafkaErrorCode::UnknownTopicOrPartition)
}

/// Whether a broker takes nothing more from the producer that sent the message. A new one has a number of its own.
pub(crate) fn is_of_a_lost_producer(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(code, Code::ProducerFenced | Code::InvalidProducerEpoch | Code::UnknownProducerId)
}

/// Whether the same call will fail again until a person changes something.
pub(crate) fn is_lasting(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        code,
        Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::Authentication
            | Code::SaslAuthenticationFailed
            | Code::InvalidTopic
            | Code::InvalidReplicationFactor
            | Code::PolicyViolation
    )
}

fn said(code: RDKafkaErrorCode) -> String {
    // "MessageTimedOut (Local: Message timed out)"
    code.to_string()
}

fn remedy(code: RDKafkaErrorCode) -> Option<&'static str> {
    use RDKafkaErrorCode as Code;
    match code {
        Code::TopicAuthorizationFailed => {
            Some("allow the user to read, write, describe and, if it is to create it, create the topic")
        }
        Code::GroupAuthorizationFailed => Some("allow the user to read the consumer groups of the prefix"),
        Code::ClusterAuthorizationFailed => {
            Some("allow the user to create topics, or create them yourself and use `Topics::Check`")
        }
        Code::Authentication | Code::SaslAuthenticationFailed => Some("check the user and the password"),
        Code::MessageSizeTooLarge => {
            Some("raise `max.message.bytes` of the topic, or store the content elsewhere and send a reference")
        }
        Code::InvalidReplicationFactor => Some("the cluster has fewer brokers than `replication_factor`"),
        Code::NotEnoughReplicas => Some("fewer replicas are in sync than `min.insync.replicas` of the topic asks for"),
        Code::AllBrokersDown | Code::BrokerTransportFailure => Some("is the cluster up, and are the addresses right?"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::ClientConfig;
    use rdkafka::producer::BaseProducer;

    use super::*;

    #[test]
    fn no_value_of_a_property_is_in_an_error() {
        for (name, value) in [("sasl.mechanism", "hunter2"), ("statistics.interval.ms", "hunter2")] {
            let created = ClientConfig::new().set("security.protocol", "sasl_plaintext").set(name, value).create();
            let error = created.map(|_: BaseProducer| ()).expect_err(name);
            assert!(!failed("connect", "connect", &error).to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn what_may_have_been_accepted_is_unknown() {
        let kind = |code, is_addressed| not_delivered("t", is_addressed, code).kind();
        assert_eq!(kind(RDKafkaErrorCode::MessageTimedOut, true), TransportErrorKind::Unknown);
        assert_eq!(kind(RDKafkaErrorCode::NotEnoughReplicasAfterAppend, true), TransportErrorKind::Unknown);
        assert_eq!(kind(RDKafkaErrorCode::PurgeInflight, true), TransportErrorKind::Unknown);
        assert_eq!(kind(RDKafkaErrorCode::MessageSizeTooLarge, true), TransportErrorKind::Refused);
        assert_eq!(kind(RDKafkaErrorCode::UnknownTopicOrPartition, true), TransportErrorKind::NoRoute);
        assert_eq!(kind(RDKafkaErrorCode::UnknownTopicOrPartition, false), TransportErrorKind::Nacked);
    }
}
