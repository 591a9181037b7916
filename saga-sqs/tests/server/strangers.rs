//! What others send: messages that do not follow `docs/wire.md`.

use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::store::{DeadLetterFilter, DeadLetterReason};
use saga_core::transport::{Settlement, Transport as _};
use saga_core::{Runtime, Service, StepError, saga_step};
use saga_sqs::SqsTransport;

use crate::support::messages::{message, publish, receive, subscribe, take};
use crate::support::{Raw, options, shared_server};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

const BYTES: &str = "<order id='7'/>";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_delivered_with_the_reason_and_settled() {
    let server = shared_server().await;
    let transport = SqsTransport::connect_with(options(server, "a")).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 10).await;
    Raw::at(server).send("a-a.fifo", BYTES).await;
    let came = receive(&mut incoming, 1).await;
    let unreadable = came[0].message.as_ref().expect_err("it is no message");
    assert_eq!(unreadable.problem, "the message attribute saga is missing");
    assert_eq!((unreadable.payload.as_slice(), unreadable.id), (BYTES.as_bytes(), None));
    assert_eq!(unreadable.headers, [("trace".to_owned(), "7".to_owned())]);
    incoming.settle(&[(came[0].tag, Settlement::Accept)]).await.unwrap();
    publish(&transport, vec![message(1)]).await;
    assert_eq!(take(&mut incoming, 1).await, [1]);
}

/// T-DEAD-1: also what is no message is given up in the end, and reaches the dead letters as it came.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_becomes_a_dead_letter_as_it_came() {
    let server = shared_server().await;
    let transport = SqsTransport::connect_with(options(server, "b").rejections_max(2)).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 10).await;
    let mut dead = transport.dead_letters("a", 10).await.unwrap().expect("there are dead letters");
    Raw::at(server).send("b-a.fifo", BYTES).await;
    let mut first = None;
    for _ in 0..=2 {
        let came = receive(&mut incoming, 1).await;
        incoming.settle(&[(came[0].tag, Settlement::Reject)]).await.unwrap();
        first.get_or_insert(came[0].message.clone());
    }
    let letter = receive(&mut dead, 1).await;
    assert_eq!(Some(letter[0].message.clone()), first);
    let info = letter[0].dead_letter.as_ref().expect("it is a dead letter");
    assert_eq!((info.queue.as_str(), info.reason.as_str(), info.deliveries), ("b-a.fifo", "delivery_limit", 3));
}

#[saga_step(service = "payments")]
async fn check_credit(cents: u64) -> Result<bool, StepError>;

#[saga_step(implements = check_credit)]
async fn check_limit(cents: u64) -> Result<bool, StepError> {
    Ok(cents < 100_000)
}

/// G8: a runtime keeps it with its reason, and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn g8_a_runtime_keeps_what_is_no_message_as_a_dead_letter() {
    let server = shared_server().await;
    let transport = SqsTransport::connect_with(options(server, "c")).await.unwrap();
    let payments = Service::named("payments").host::<check_limit>().build().unwrap();
    let runtime =
        Runtime::builder(MemoryStore::new()).transport(transport.clone()).service(&payments).start().await.unwrap();
    let raw = Raw::at(server);
    raw.send("c-service_3Apayments.fifo", BYTES).await;
    let desk = runtime.admin().dead_letters();
    let letters = async {
        loop {
            let letters = desk.list(DeadLetterFilter::default()).await.unwrap();
            if !letters.is_empty() {
                return letters;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let letters = tokio::time::timeout(crate::support::messages::PATIENCE, letters).await.expect("a letter in time");
    assert_eq!((letters.len(), letters[0].letter.reason), (1, DeadLetterReason::Unreadable));
    runtime.shutdown().await;
    transport.close().await;
    assert_eq!(raw.depth("c-service_3Apayments.fifo").await, 0, "it is settled");
}
