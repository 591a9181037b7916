use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::change_message_visibility_batch::ChangeMessageVisibilityBatchOutput;
use aws_sdk_sqs::operation::create_queue::CreateQueueOutput;
use aws_sdk_sqs::operation::delete_message_batch::{DeleteMessageBatchError, DeleteMessageBatchOutput};
use aws_sdk_sqs::operation::get_queue_url::GetQueueUrlError;
use aws_sdk_sqs::operation::receive_message::{ReceiveMessageError, ReceiveMessageOutput};
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, DeleteMessageBatchResultEntry, Message, MessageSystemAttributeName as System,
};
use aws_smithy_mocks::{MockResponse, Rule, mock};
use saga_core::transport::{Delivery, Incoming, Settlement, Subscription, Transport as _, TransportErrorKind};
use tokio::time::Instant;

use crate::mock::{Log, meta, transport};
use crate::transport::SqsTransport;

const HANDLE_EXPIRED: &str = "Value h for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.";

/// What a request for messages answers.
enum Answer {
    Messages(Vec<(&'static str, u32)>),
    Error(&'static str),
}

/// A queue that answers so, one request after the other, and then has no messages. A message is its handle and how often it was received.
fn receiving(answers: Vec<Answer>) -> Rule {
    let answers = Mutex::new(VecDeque::from(answers));
    mock!(Client::receive_message).then_compute_response(move |asked| {
        let mut answers = answers.lock().unwrap();
        let message = |(handle, receives): (&str, u32)| {
            let receives = receives.to_string();
            Message::builder()
                .receipt_handle(handle)
                .body("-")
                .attributes(System::ApproximateReceiveCount, receives)
                .build()
        };
        match answers.pop_front() {
            Some(Answer::Error(code)) => MockResponse::Error(ReceiveMessageError::generic(meta(code, ""))),
            Some(Answer::Messages(messages)) => {
                assert!(
                    messages.len() <= usize::try_from(asked.max_number_of_messages().unwrap()).unwrap(),
                    "more than the room"
                );
                let messages = messages.into_iter().map(message).collect();
                MockResponse::Output(ReceiveMessageOutput::builder().set_messages(Some(messages)).build())
            }
            None => MockResponse::Output(ReceiveMessageOutput::builder().build()),
        }
    })
}

/// Notes the handles of each request, and deletes them.
fn deleting(deleted: &Arc<Mutex<Vec<Vec<String>>>>) -> Rule {
    let deleted = Arc::clone(deleted);
    mock!(Client::delete_message_batch).then_compute_output(move |asked| {
        let handles = asked.entries().iter().map(|entry| entry.receipt_handle().to_owned()).collect();
        deleted.lock().unwrap().push(handles);
        let done = asked
            .entries()
            .iter()
            .map(|entry| DeleteMessageBatchResultEntry::builder().id(entry.id()).build().unwrap());
        let output = DeleteMessageBatchOutput::builder().set_successful(Some(done.collect())).set_failed(Some(vec![]));
        output.build().unwrap()
    })
}

/// When a message was withheld, and for how long.
type Withheld = Arc<Mutex<Vec<(Duration, String, i32)>>>;

fn withholding(withheld: &Withheld) -> Rule {
    let (withheld, start) = (Arc::clone(withheld), Instant::now());
    mock!(Client::change_message_visibility_batch).then_compute_output(move |asked| {
        for entry in asked.entries() {
            let handle = entry.receipt_handle().to_owned();
            withheld.lock().unwrap().push((start.elapsed(), handle, entry.visibility_timeout().unwrap()));
        }
        let output =
            ChangeMessageVisibilityBatchOutput::builder().set_successful(Some(vec![])).set_failed(Some(vec![]));
        output.build().unwrap()
    })
}

async fn subscribe(transport: &SqsTransport, prefetch: usize) -> Box<dyn Incoming> {
    let subscription = Subscription { name: "a".into(), topics: vec!["orders".into()], prefetch };
    transport.subscribe(subscription).await.unwrap()
}

async fn settle(incoming: &mut Box<dyn Incoming>, deliveries: &[Delivery], settlement: Settlement) {
    let settled: Vec<_> = deliveries.iter().map(|delivery| (delivery.tag, settlement)).collect();
    incoming.settle(&settled).await.unwrap();
}

/// The service subscribes again, and what is closed ends.
async fn ends(transport: SqsTransport, mut incoming: Box<dyn Incoming>) {
    let error = tokio::time::timeout(Duration::from_mins(1), incoming.receive(1)).await.expect("it does not wait");
    let error = error.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("a task of the subscription panicked"), "{error}");
    tokio::time::timeout(Duration::from_mins(1), transport.close()).await.expect("it is closed in time");
}

/// G10: credentials of the application may panic in each request.
#[tokio::test(start_paused = true)]
async fn a_panic_while_messages_are_asked_for_ends_the_subscription() {
    let panics = mock!(Client::receive_message).then_compute_output(|_| panic!("the credentials panic"));
    let transport = transport(&[&panics], &[]);
    let incoming = subscribe(&transport, 1).await;
    ends(transport, incoming).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_messages_are_deleted_ends_the_subscription() {
    let receive = receiving(vec![Answer::Messages(vec![("h", 1)])]);
    let panics = mock!(Client::delete_message_batch).then_compute_output(|_| panic!("the credentials panic"));
    let transport = transport(&[&receive, &panics], &[]);
    let mut incoming = subscribe(&transport, 1).await;
    let came = incoming.receive(1).await.unwrap();
    settle(&mut incoming, &came, Settlement::Accept).await;
    ends(transport, incoming).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_messages_are_withheld_ends_the_subscription() {
    let receive = receiving(vec![Answer::Messages(vec![("h", 1)])]);
    let panics =
        mock!(Client::change_message_visibility_batch).then_compute_output(|_| panic!("the credentials panic"));
    let transport = transport(&[&receive, &panics], &[]);
    let mut incoming = subscribe(&transport, 1).await;
    incoming.receive(1).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(panics.num_calls(), 1);
    ends(transport, incoming).await;
}

/// T-SUB-7: a FIFO queue refuses to delete by a handle whose time has passed. The message comes again.
#[tokio::test(start_paused = true)]
async fn an_expired_handle_is_settled_without_effect_and_error() {
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let expired = mock!(Client::delete_message_batch).then_compute_output(|asked| {
        let failed = BatchResultErrorEntry::builder().id(asked.entries()[0].id()).code("InvalidParameterValue");
        let failed = failed.message(HANDLE_EXPIRED).sender_fault(true).build().unwrap();
        let output = DeleteMessageBatchOutput::builder().set_successful(Some(vec![])).failed(failed);
        output.build().unwrap()
    });
    let transport = transport(&[&receiving(vec![Answer::Messages(vec![("h", 1)])]), &expired], &[]);
    let mut incoming = subscribe(&transport, 1).await;
    let came = incoming.receive(1).await.unwrap();
    settle(&mut incoming, &came, Settlement::Accept).await;
    transport.close().await;
    assert_eq!(expired.num_calls(), 1, "it is not tried again");
    assert!(log.warnings().iter().all(|said| said.contains("malformed message")), "{:?}", log.warnings());
}

#[tokio::test(start_paused = true)]
async fn a_message_is_withheld_from_others_while_it_is_here() {
    let (withheld, deleted) = (Withheld::default(), Arc::default());
    let receive = receiving(vec![Answer::Messages(vec![("h", 1)])]);
    let transport = transport(&[&receive, &withholding(&withheld), &deleting(&deleted)], &[]);
    let mut incoming = subscribe(&transport, 1).await;
    let came = incoming.receive(1).await.unwrap();
    tokio::time::sleep(Duration::from_mins(10)).await;
    settle(&mut incoming, &came, Settlement::Accept).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let withheld = withheld.lock().unwrap();
    let mut last = Duration::ZERO;
    for (at, handle, seconds) in &*withheld {
        assert_eq!((handle.as_str(), *seconds), ("h", 30));
        assert!(*at <= last + Duration::from_secs(11), "a third of its time has passed, or little more: {withheld:?}");
        last = *at;
    }
    assert!((last.as_secs()).abs_diff(600) <= 11, "until it was settled: {withheld:?}");
    assert_eq!(*deleted.lock().unwrap(), [["h"]]);
}

/// T-SUB-3, T-SUB-8
#[tokio::test(start_paused = true)]
async fn a_rejected_message_is_let_go_at_once_and_the_last_time_is_logged() {
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let withheld = Withheld::default();
    let receive = receiving(vec![Answer::Messages(vec![("first", 1)]), Answer::Messages(vec![("last", 21)])]);
    let transport = transport(&[&receive, &withholding(&withheld)], &[]);
    let mut incoming = subscribe(&transport, 1).await;
    for (redelivered, warnings) in [(false, 1), (true, 3)] {
        let came = incoming.receive(1).await.unwrap();
        assert_eq!(came[0].redelivered, redelivered);
        settle(&mut incoming, &came, Settlement::Reject).await;
        // Each of them also is malformed.
        assert_eq!(log.warnings().len(), warnings, "{:?}", log.warnings());
    }
    assert!(log.warnings()[2].contains("delivery limit reached"), "{:?}", log.warnings());
    transport.close().await;
    let withheld: Vec<(String, i32)> =
        withheld.lock().unwrap().iter().map(|(_, handle, seconds)| (handle.clone(), *seconds)).collect();
    assert_eq!(withheld, [("first".to_owned(), 0), ("last".to_owned(), 0)]);
}

/// Requests cost money: what is settled together shares one.
#[tokio::test(start_paused = true)]
async fn ten_messages_are_deleted_in_one_request_and_failed_ones_again() {
    let deleted = Arc::default();
    let fails = mock!(Client::delete_message_batch)
        .sequence()
        .error(|| DeleteMessageBatchError::generic(meta("InternalFailure", "")))
        .build();
    let handles = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let receive = receiving(vec![Answer::Messages(handles.map(|handle| (handle, 1)).to_vec())]);
    let transport = transport(&[&receive, &fails, &deleting(&deleted)], &[]);
    let mut incoming = subscribe(&transport, 10).await;
    let came = incoming.receive(10).await.unwrap();
    settle(&mut incoming, &came, Settlement::Accept).await;
    transport.close().await;
    assert_eq!(*deleted.lock().unwrap(), [handles]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_queue_is_declared_again() {
    let url = mock!(Client::get_queue_url).match_requests(|asked| asked.queue_name() == Some("shop-a.fifo"));
    let url = url
        .sequence()
        .output(|| aws_sdk_sqs::operation::get_queue_url::GetQueueUrlOutput::builder().queue_url("first").build())
        .error(|| GetQueueUrlError::generic(meta("QueueDoesNotExist", "")))
        .build();
    let create = mock!(Client::create_queue).then_compute_output(|asked| {
        let attributes = asked.attributes().unwrap();
        let policy = &attributes[&aws_sdk_sqs::types::QueueAttributeName::RedrivePolicy];
        assert_eq!(policy, r#"{"deadLetterTargetArn":"arn:aws:sqs:r:1:q.fifo","maxReceiveCount":21}"#);
        CreateQueueOutput::builder().queue_url("second").build()
    });
    let receive = receiving(vec![Answer::Error("QueueDoesNotExist"), Answer::Messages(vec![("h", 1)])]);
    let transport = transport(&[&url, &create, &receive], &[]);
    let mut incoming = subscribe(&transport, 1).await;
    assert_eq!(incoming.receive(1).await.unwrap().len(), 1);
    assert_eq!(create.num_calls(), 1);
}

/// AWS: a new queue cannot be used for about a second, and the deletion of a queue takes up to a minute.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_found_but_cannot_be_used_is_asked_with_pauses() {
    // A receiver that makes no pause stops the virtual time. So after that many requests the queue can be used.
    const REQUESTS_MAX: usize = 200;
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let receive = mock!(Client::receive_message).then_compute_response(move |_| {
        if counted.fetch_add(1, Ordering::Relaxed) < REQUESTS_MAX {
            return MockResponse::Error(ReceiveMessageError::generic(meta("QueueDoesNotExist", "")));
        }
        MockResponse::Output(ReceiveMessageOutput::builder().build())
    });
    let transport = transport(&[&receive], &[]);
    let incoming = subscribe(&transport, 1).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let asked = asked.load(Ordering::Relaxed);
    assert!((2..=10).contains(&asked), "{asked} requests");
    let warnings = log.warnings();
    assert!(matches!(&warnings[..], [one] if one.contains("queue was gone")), "{warnings:?}");
    assert!(!transport.health().is_healthy());
    drop(incoming);
}

/// A queue of so many messages: ten of them, or fewer, for each request.
fn filled_with(messages: usize) -> Rule {
    let handed_out = AtomicUsize::new(0);
    mock!(Client::receive_message).then_compute_output(move |asked| {
        let room = usize::try_from(asked.max_number_of_messages().unwrap()).unwrap();
        let mut output = ReceiveMessageOutput::builder();
        for _ in 0..room {
            let number = handed_out.fetch_add(1, Ordering::Relaxed);
            if number < messages {
                output = output.messages(Message::builder().receipt_handle(number.to_string()).body("-").build());
            }
        }
        output.build()
    })
}

/// Where a policy does not allow to delete, what was accepted stays here. It must not fill the memory.
#[tokio::test(start_paused = true)]
async fn messages_that_sqs_does_not_delete_are_held_up_to_a_limit() {
    const PREFETCH: usize = 10;
    let is_allowed = Arc::new(AtomicBool::new(false));
    let allowed = Arc::clone(&is_allowed);
    let delete = mock!(Client::delete_message_batch).then_compute_response(move |asked| {
        if !allowed.load(Ordering::Relaxed) {
            return MockResponse::Error(DeleteMessageBatchError::generic(meta("AccessDenied", "sqs:deletemessage")));
        }
        let done = |id: &str| DeleteMessageBatchResultEntry::builder().id(id).build().unwrap();
        let done = asked.entries().iter().map(|entry| done(entry.id())).collect();
        let output = DeleteMessageBatchOutput::builder().set_successful(Some(done)).set_failed(Some(vec![]));
        MockResponse::Output(output.build().unwrap())
    });
    // A receiver without a limit stops the virtual time. So the queue has an end.
    let transport = transport(&[&filled_with(2_000), &delete, &withholding(&Withheld::default())], &[]);
    let mut incoming = subscribe(&transport, PREFETCH).await;
    let mut received = 0;
    let accepting = async {
        loop {
            let came = incoming.receive(PREFETCH).await.unwrap();
            received += came.len();
            settle(&mut incoming, &came, Settlement::Accept).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(10), accepting).await.expect_err("it waits for more messages");
    assert!((PREFETCH..=10 * PREFETCH).contains(&received), "{received} messages");
    let health = transport.health();
    assert!(health.subscriptions[0].last_error.as_ref().is_some_and(|error| error.contains("settle")), "{health:?}");
    is_allowed.store(true, Ordering::Relaxed);
    let came = tokio::time::timeout(Duration::from_mins(1), incoming.receive(PREFETCH)).await;
    assert!(!came.expect("it receives again").unwrap().is_empty());
}

/// A runtime is told, so that it can tell its operator.
#[tokio::test(start_paused = true)]
async fn what_is_not_allowed_ends_the_receiver() {
    let transport = transport(&[&receiving(vec![Answer::Error("AccessDenied")])], &[]);
    let mut incoming = subscribe(&transport, 1).await;
    assert_eq!(incoming.receive(1).await.unwrap_err().kind(), TransportErrorKind::Refused);
    let health = transport.health();
    assert!(!health.is_healthy() && health.subscriptions[0].last_error.is_some(), "{health:?}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_told_once_and_survived() {
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let mut answers: Vec<Answer> = (0..20).map(|_| Answer::Error("RequestThrottled")).collect();
    answers.push(Answer::Messages(vec![("h", 1)]));
    let transport = transport(&[&receiving(answers)], &[]);
    let mut incoming = subscribe(&transport, 1).await;
    assert_eq!(incoming.receive(1).await.unwrap().len(), 1);
    let outages = log.warnings().iter().filter(|said| said.contains("receiving does not work")).count();
    assert_eq!((outages, log.has("receiving works again")), (1, true));
    assert!(transport.health().is_healthy());
}

/// T-SUB-2
#[tokio::test(start_paused = true)]
async fn closing_tells_sqs_all_before_it_ends() {
    let (withheld, deleted) = (Withheld::default(), Arc::default());
    let receive = receiving(vec![Answer::Messages(vec![("a", 1), ("b", 1), ("c", 1)])]);
    let transport = transport(&[&receive, &withholding(&withheld), &deleting(&deleted)], &[]);
    let mut incoming = subscribe(&transport, 3).await;
    let came = incoming.receive(2).await.unwrap();
    settle(&mut incoming, &came[..1], Settlement::Accept).await;
    transport.close().await;
    assert_eq!(*deleted.lock().unwrap(), [["a"]]);
    let back: Vec<String> = withheld.lock().unwrap().iter().map(|(_, handle, _)| handle.clone()).collect();
    assert_eq!(back, ["b", "c"]);
    assert_eq!(incoming.receive(1).await.unwrap_err().kind(), TransportErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_service_are_received_under_its_name_only() {
    let transport = transport(&[], &[]);
    let subscription = Subscription { name: "audit".into(), topics: vec!["service:payments".into()], prefetch: 1 };
    let error = transport.subscribe(subscription).await.err().expect("nothing would come");
    assert_eq!(error.kind(), TransportErrorKind::Refused);
    assert!(error.to_string().contains("give it the name of the service"), "{error}");
}
