//! What happens to queues, to the server and to processes.

use std::time::Duration;

use saga_core::transport::{MessageKind, Transport as _, TransportErrorKind, service_topic};
use saga_servers::MotoServer;
use saga_sqs::{Declare, SqsTransport};

use crate::support::messages::{PATIENCE, message, publish, receive, subscribe, take};
use crate::support::{Raw, options, shared_server};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_queue_is_declared_again() {
    let server = shared_server().await;
    let transport = SqsTransport::connect_with(options(server, "d")).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 10).await;
    publish(&transport, vec![message(1)]).await;
    assert_eq!(take(&mut incoming, 1).await, [1]);
    let raw = Raw::at(server);
    raw.delete("d-a.fifo").await;
    let there_again = async {
        while !raw.exists("d-a.fifo").await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, there_again).await.expect("it is declared again in time");
    publish(&transport, vec![message(2)]).await;
    assert_eq!(take(&mut incoming, 1).await, [2], "its subscription is there too");
}

/// T-SUB-2, T-SUB-8: a process that died told SQS nothing. Its message comes again when its time has passed.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_process_had_comes_again() {
    let server = shared_server().await;
    let transport = SqsTransport::connect_with(options(server, "e")).await.unwrap();
    drop(subscribe(&transport, "a", 10).await);
    transport.close().await;
    publish(&transport, vec![message(1)]).await;
    Raw::at(server).receive_and_die("e-a.fifo").await;
    let mut incoming = subscribe(&transport, "a", 10).await;
    let came = receive(&mut incoming, 1).await;
    assert!(came[0].redelivered, "{came:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_nothing_is_sent_and_nothing_ends() {
    let mut server = MotoServer::start().await.unwrap();
    let transport = SqsTransport::connect_with(options(&server, "f")).await.unwrap();
    let incoming = subscribe(&transport, "a", 10).await;
    server.kill().await.unwrap();
    let answers = transport.publish(vec![message(1), message(2)]).await;
    for answer in answers {
        assert_eq!(answer.unwrap_err().kind(), TransportErrorKind::Unavailable);
    }
    assert_eq!(transport.reachable().await.unwrap_err().kind(), TransportErrorKind::Unavailable);
    assert!(!transport.health().is_healthy());
    let error = SqsTransport::connect_with(options(&server, "f")).await.expect_err("no server is there");
    assert!(error.to_string().contains("the service cannot be reached"), "{error}");
    drop(incoming);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_declared_what_is_missing_is_named() {
    let server = shared_server().await;
    let strict = SqsTransport::connect_with(options(server, "g").declare(Declare::Nothing)).await.unwrap();
    let subscription = |name: &str| saga_core::transport::Subscription {
        name: name.into(),
        topics: vec!["orders".into()],
        prefetch: 1,
    };
    let error = strict.subscribe(subscription("a")).await.err().expect("the queue is missing");
    assert!(error.to_string().contains("there is no queue \"g-a.fifo\""), "{error}");
    let command = saga_core::transport::Message { kind: MessageKind::Command, topic: service_topic("x"), ..message(1) };
    for answer in strict.publish(vec![message(1), command]).await {
        assert_eq!(answer.unwrap_err().kind(), TransportErrorKind::NoRoute);
    }
    let lenient = SqsTransport::connect_with(options(server, "g")).await.unwrap();
    drop(subscribe(&lenient, "a", 1).await);
    publish(&strict, vec![message(1)]).await;
    let mut incoming = strict.subscribe(subscription("a")).await.unwrap();
    assert_eq!(take(&mut incoming, 1).await, [1]);
}
