//! Topics that one message cannot be sent to, while others can.

use std::time::Duration;

use rdkafka::types::RDKafkaRespErr as Code;
use saga_core::transport::{Message, Subscription, Transport as _, TransportErrorKind};
use saga_kafka::KafkaTransport;

use crate::support::messages::{message, publish, subscribe, take};
use crate::support::{Cluster, options};

/// So long that no call ends before the other message has come.
const LONG: Duration = Duration::from_secs(30);

impl Cluster {
    async fn topic_error(&self, topic: &'static str, error: Code) {
        self.order(move |cluster| cluster.topic_error(topic, error)).await.unwrap();
    }
}

fn event_of(topic: &str, number: u32) -> Message {
    Message { topic: topic.into(), ..message(number) }
}

/// An operator grants the permission, and the message is sent: it is not `Refused`.
#[tokio::test(flavor = "multi_thread")]
async fn event_of_a_forbidden_topic_is_nacked() {
    let cluster = Cluster::start();
    let transport = cluster.transport("f.").await;
    cluster.create_topic("f.x", 3).await;
    cluster.topic_error("f.x", Code::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED).await;
    let answers = transport.publish(vec![event_of("x", 1), message(2)]).await;
    let error = answers[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Nacked, "{error}");
    assert!(error.to_string().contains("allow the user"), "{error}");
    assert!(answers[1].is_ok(), "{answers:?}");
    // A service that may not receive does not start.
    let subscription = Subscription { name: "a".into(), topics: vec!["x".into()], prefetch: 1 };
    let error = transport.subscribe(subscription).await.err().expect("it is forbidden");
    assert_eq!(error.kind(), TransportErrorKind::Refused, "{error}");
    cluster.topic_error("f.x", Code::RD_KAFKA_RESP_ERR_NO_ERROR).await;
    publish(&transport, vec![event_of("x", 1)]).await;
}

/// T-PUB-2: topics that have no leader hold up no message of another topic.
#[tokio::test(flavor = "multi_thread")]
async fn topics_without_a_leader_hold_up_no_other() {
    let cluster = Cluster::start();
    let patient = options(&cluster, "f.").connect_timeout(LONG).publish_timeout(LONG);
    let transport = KafkaTransport::connect_with(patient).await.unwrap();
    let receiving = cluster.transport("f.").await;
    let mut incoming = subscribe(&receiving, "a", 10).await;
    for topic in ["f.x", "f.y"] {
        cluster.create_topic(topic, 3).await;
        cluster.topic_error(topic, Code::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE).await;
    }
    let publishing = transport.publish(vec![event_of("x", 2), event_of("y", 3), message(1)]);
    tokio::select! {
        answers = publishing => panic!("the topics have no leader: {answers:?}"),
        came = take(&mut incoming, 1) => assert_eq!(came, [1]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_for_topics_ends_with_the_time_limit_of_publishing() {
    let cluster = Cluster::start();
    // Enough for the message whose topic has a leader, on a busy machine too.
    let options = options(&cluster, "f.").connect_timeout(LONG).publish_timeout(Duration::from_secs(10));
    let transport = KafkaTransport::connect_with(options).await.unwrap();
    for topic in ["f.x", "f.y"] {
        cluster.create_topic(topic, 3).await;
        cluster.topic_error(topic, Code::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE).await;
    }
    let answers = transport.publish(vec![event_of("x", 2), event_of("y", 3), message(1)]).await;
    for answer in &answers[..2] {
        let error = answer.as_ref().unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::Nacked, "the cluster is there: {error}");
        assert!(error.to_string().contains("within 10s"), "{error}");
    }
    assert!(answers[2].is_ok(), "{answers:?}");
}
