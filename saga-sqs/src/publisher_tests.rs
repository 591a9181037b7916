use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, future};
use aws_sdk_sns::operation::list_topics::{ListTopicsError, ListTopicsOutput};
use aws_sdk_sns::operation::publish_batch::{PublishBatchError, PublishBatchOutput};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::get_queue_url::{GetQueueUrlError, GetQueueUrlOutput};
use aws_sdk_sqs::operation::send_message_batch::{
    SendMessageBatchError, SendMessageBatchInput, SendMessageBatchOutput,
};
use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchResultEntry};
use aws_smithy_mocks::{MockResponse, Rule, mock};
use saga_core::transport::{Transport as _, TransportErrorKind};

use crate::clients::Clients;
use crate::mock::{Log, SECRET, command, event, kinds, meta, transport};

/// The bodies and the deduplication ids of a request.
type Request = Vec<(String, String)>;

/// What was sent, request by request.
#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<Request>>>);

impl Sent {
    fn note(&self, asked: &SendMessageBatchInput) {
        let message = |entry: &aws_sdk_sqs::types::SendMessageBatchRequestEntry| {
            (entry.message_body().to_owned(), entry.message_deduplication_id().unwrap().to_owned())
        };
        self.0.lock().unwrap().push(asked.entries().iter().map(message).collect());
    }

    fn bodies(&self) -> Vec<Vec<String>> {
        let sent = self.0.lock().unwrap();
        sent.iter().map(|request| request.iter().map(|(body, _)| body.clone()).collect()).collect()
    }
}

/// A queue that takes all but the messages with these bodies, which fail with a code so many times.
fn queue(sent: &Sent, fails: &[(&'static str, &'static str, usize)]) -> Rule {
    let sent = sent.clone();
    let open: Mutex<BTreeMap<&str, (&str, usize)>> =
        Mutex::new(fails.iter().map(|(body, code, times)| (*body, (*code, *times))).collect());
    mock!(Client::send_message_batch).then_compute_output(move |asked| {
        sent.note(asked);
        let mut output = SendMessageBatchOutput::builder().set_successful(Some(vec![])).set_failed(Some(vec![]));
        for entry in asked.entries() {
            let mut open = open.lock().unwrap();
            if let Some((code, times)) = open.get_mut(entry.message_body()).filter(|(_, times)| *times > 0) {
                *times -= 1;
                let failed = BatchResultErrorEntry::builder().id(entry.id()).code(*code).sender_fault(false);
                output = output.failed(failed.build().unwrap());
            } else {
                let taken = SendMessageBatchResultEntry::builder().id(entry.id()).message_id("m");
                output = output.successful(taken.md5_of_message_body("d").build().unwrap());
            }
        }
        output.build().unwrap()
    })
}

fn failing(code: &'static str, message: &'static str) -> Rule {
    mock!(Client::send_message_batch).then_error(move || SendMessageBatchError::generic(meta(code, message)))
}

/// T-PUB-3, T-PUB-4: a part of a request that fails is sent again with the same deduplication ids, before the next of its group.
#[tokio::test(start_paused = true)]
async fn a_message_that_was_not_taken_is_not_overtaken_by_its_group() {
    let sent = Sent::default();
    let transport = transport(&[&queue(&sent, &[("1", "InternalError", 2)])], &[]);
    let answers = transport.publish(vec![command(1, "a"), command(2, "b"), command(3, "a")]).await;
    assert_eq!(kinds(&answers), [None, None, None]);
    assert_eq!(sent.bodies(), [vec!["1", "2"], vec!["1"], vec!["1"], vec!["3"]]);
    let sent = sent.0.lock().unwrap();
    assert_eq!(sent[0][0].1, sent[2][0].1, "a repetition has the same deduplication id");
}

#[tokio::test(start_paused = true)]
async fn behind_a_message_that_is_not_taken_its_group_stops() {
    let sent = Sent::default();
    let transport = transport(&[&queue(&sent, &[("1", "InternalError", 9)])], &[]);
    let answers = transport.publish(vec![command(1, "a"), command(2, "b"), command(3, "a"), command(4, "b")]).await;
    let unknown = Some(TransportErrorKind::Unknown);
    assert_eq!(kinds(&answers), [unknown, None, unknown, None]);
    assert!(!sent.bodies().concat().contains(&"3".to_owned()));
}

/// T-PUB-2
#[tokio::test(start_paused = true)]
async fn a_refused_message_holds_up_no_other() {
    let sent = Sent::default();
    let transport = transport(&[&queue(&sent, &[("1", "InvalidMessageContents", 9)])], &[]);
    let answers = transport.publish(vec![command(1, "a"), command(2, "b"), command(3, "a")]).await;
    assert_eq!(kinds(&answers), [Some(TransportErrorKind::Refused), None, None]);
    assert_eq!(sent.bodies(), [vec!["1", "2"], vec!["3"]]);
}

#[tokio::test(start_paused = true)]
async fn of_a_refused_request_each_message_is_tried_alone() {
    let sent = Sent::default();
    let noted = sent.clone();
    let rule = mock!(Client::send_message_batch).then_compute_response(move |asked| {
        noted.note(asked);
        if asked.entries().iter().any(|entry| entry.message_body() == "2") {
            return MockResponse::Error(SendMessageBatchError::generic(meta("InvalidMessageContents", "a character")));
        }
        let taken = |entry: &aws_sdk_sqs::types::SendMessageBatchRequestEntry| {
            let taken = SendMessageBatchResultEntry::builder().id(entry.id()).message_id("m").md5_of_message_body("d");
            taken.build().unwrap()
        };
        let taken = asked.entries().iter().map(taken).collect();
        let output = SendMessageBatchOutput::builder().set_successful(Some(taken)).set_failed(Some(vec![]));
        MockResponse::Output(output.build().unwrap())
    });
    let answers =
        transport(&[&rule], &[]).publish((1..=3).map(|number| command(number, &number.to_string())).collect()).await;
    assert_eq!(kinds(&answers), [None, Some(TransportErrorKind::Refused), None]);
}

/// T-PUB-1: what the answer does not name may have been taken or not.
#[tokio::test(start_paused = true)]
async fn what_an_answer_leaves_out_is_unknown() {
    let rule = mock!(Client::send_message_batch).then_output(|| {
        let empty = SendMessageBatchOutput::builder().set_successful(Some(vec![])).set_failed(Some(vec![]));
        empty.build().unwrap()
    });
    let answers = transport(&[&rule], &[]).publish(vec![command(1, "a")]).await;
    assert_eq!(kinds(&answers), [Some(TransportErrorKind::Unknown)]);
}

/// T-PUB-7: the outbox waits, one line tells it, and another one when a message was sent.
#[tokio::test(start_paused = true)]
async fn throttling_is_unavailable_and_told_once() {
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let sent = Sent::default();
    let is_throttled = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&is_throttled);
    let throttled = mock!(Client::send_message_batch)
        .match_requests(move |_| asked.load(Ordering::Relaxed))
        .then_error(|| SendMessageBatchError::generic(meta("RequestThrottled", "slow down")));
    let transport = transport(&[&throttled, &queue(&sent, &[])], &[]);
    transport.reachable().await.unwrap();
    for _ in 0..3 {
        let answers = transport.publish(vec![command(1, "a"), command(2, "b")]).await;
        assert_eq!(kinds(&answers), [Some(TransportErrorKind::Unavailable); 2]);
    }
    assert_eq!(transport.reachable().await.unwrap_err().kind(), TransportErrorKind::Unavailable);
    assert!(transport.health().publisher.unavailable_for.is_some() && !transport.health().is_healthy());
    // SQS answers another request, so the outbox tries again, and is throttled again.
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        transport.reachable().await.unwrap();
        let answers = transport.publish(vec![command(1, "a")]).await;
        assert_eq!(kinds(&answers), [Some(TransportErrorKind::Unavailable)]);
    }
    let warnings = log.warnings();
    assert!(matches!(&warnings[..], [one] if one.contains("sending does not work")), "{warnings:?}");
    assert!(!log.has("sending works again"));
    is_throttled.store(false, Ordering::Relaxed);
    assert_eq!(kinds(&transport.publish(vec![command(1, "a")]).await), [None]);
    transport.reachable().await.unwrap();
    assert!(log.has("sending works again"));
}

/// G10: without the look at SQS the outbox would wait for ever.
#[tokio::test(start_paused = true)]
async fn a_panic_in_the_look_at_sqs_does_not_stop_sending() {
    let throttled = mock!(Client::send_message_batch)
        .then_error(|| SendMessageBatchError::generic(meta("RequestThrottled", "slow down")));
    let panics = mock!(Client::list_queues).then_compute_output(|_| panic!("the credentials panic"));
    let transport = transport(&[&throttled, &panics], &[]);
    transport.publish(vec![command(1, "a")]).await;
    assert_eq!(transport.reachable().await.unwrap_err().kind(), TransportErrorKind::Unavailable);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(panics.num_calls() > 0, "it looked");
    // The next message shows whether sending works.
    transport.reachable().await.unwrap();
}

/// Part of a request may be throttled.
#[tokio::test(start_paused = true)]
async fn throttling_of_messages_is_told_once() {
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let transport = transport(&[&queue(&Sent::default(), &[("1", "RequestThrottled", 99)])], &[]);
    for _ in 0..5 {
        let answers = transport.publish(vec![command(1, "a"), command(2, "b")]).await;
        assert_eq!(kinds(&answers), [Some(TransportErrorKind::Unavailable), None]);
        assert_eq!(kinds(&transport.publish(vec![command(3, "b")]).await), [None]);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(log.warnings().len(), 1, "{:?}", log.warnings());
}

/// What failed is asked, and not the other service.
#[tokio::test(start_paused = true)]
async fn an_outage_of_sns_ends_when_sns_answers() {
    let publish = mock!(aws_sdk_sns::Client::publish_batch)
        .then_error(|| PublishBatchError::generic(meta("Throttled", "slow down")));
    let is_down = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&is_down);
    let list = mock!(aws_sdk_sns::Client::list_topics).then_compute_response(move |_| {
        if asked.load(Ordering::Relaxed) {
            return MockResponse::Error(ListTopicsError::generic(meta("Throttled", "slow down")));
        }
        MockResponse::Output(ListTopicsOutput::builder().build())
    });
    let transport = transport(&[], &[&publish, &list]);
    assert_eq!(kinds(&transport.publish(vec![event(1)]).await), [Some(TransportErrorKind::Unavailable)]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(transport.reachable().await.unwrap_err().kind(), TransportErrorKind::Unavailable);
    is_down.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(2)).await;
    transport.reachable().await.unwrap();
}

/// A provider that gets none, as that of a machine whose metadata service does not answer.
#[derive(Debug)]
struct NoCredentials;

impl ProvideCredentials for NoCredentials {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::ready(Err(CredentialsError::provider_error("the secret was hunter2/secret")))
    }
}

#[tokio::test]
async fn without_credentials_nothing_is_sent_and_it_is_said() {
    let options = crate::SqsOptions::new("r").credentials(NoCredentials).endpoint("http://127.0.0.1:9");
    let error = crate::SqsTransport::connect_with(options.clone()).await.expect_err("there are no credentials");
    assert_eq!(error.kind(), TransportErrorKind::Refused);
    let error = error.to_string();
    assert!(error.contains("check the access key") && !error.contains("hunter2"), "{error}");
    let transport = crate::SqsTransport::over(Clients::new(&options).unwrap(), options).unwrap();
    let answers = transport.publish(vec![command(1, "a"), event(2)]).await;
    assert_eq!(kinds(&answers), [Some(TransportErrorKind::Unavailable); 2]);
}

/// T-PUB-6: it is one queue's matter.
#[tokio::test(start_paused = true)]
async fn what_is_not_allowed_is_nacked_and_no_outage() {
    let transport = transport(&[&failing("AccessDenied", "not authorized to perform: sqs:sendmessage")], &[]);
    let answers = transport.publish(vec![command(1, "a")]).await;
    assert_eq!(kinds(&answers), [Some(TransportErrorKind::Nacked)]);
    let error = answers[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("sqs:sendmessage") && error.contains("allow it in the policy"), "{error}");
    transport.reachable().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_refused_without_a_request() {
    let sent = Sent::default();
    let transport = transport(&[&queue(&sent, &[])], &[]);
    let mut large = command(1, "a");
    large.payload = vec![b'x'; (700 << 10) + 1];
    let answers = transport.publish(vec![large, command(2, "a")]).await;
    assert_eq!(kinds(&answers), [Some(TransportErrorKind::Refused), None]);
    assert_eq!(sent.bodies(), [["2"]]);
}

/// T-PUB-5: a queue that is gone is looked for again, and not sent to from memory.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_gone_is_no_route_until_it_is_there_again() {
    let sent = Sent::default();
    let url = mock!(Client::get_queue_url)
        .sequence()
        .output(|| GetQueueUrlOutput::builder().queue_url("q").build())
        .error(|| GetQueueUrlError::generic(meta("QueueDoesNotExist", "")))
        .output(|| GetQueueUrlOutput::builder().queue_url("q").build())
        .build();
    let gone = mock!(Client::send_message_batch)
        .sequence()
        .error(|| SendMessageBatchError::generic(meta("AWS.SimpleQueueService.NonExistentQueue", "")))
        .build();
    let transport = transport(&[&url, &gone, &queue(&sent, &[])], &[]);
    for _ in 0..2 {
        let answers = transport.publish(vec![command(1, "a")]).await;
        assert_eq!(kinds(&answers), [Some(TransportErrorKind::NoRoute)]);
    }
    assert_eq!(kinds(&transport.publish(vec![command(1, "a")]).await), [None]);
}

/// Without its subscriptions, a topic that is made again would lose what is sent to it. So it is left to its receivers first.
#[tokio::test(start_paused = true)]
async fn a_topic_that_is_gone_is_left_to_its_receivers_first() {
    let created = mock!(aws_sdk_sns::Client::create_topic).then_compute_output(|asked| {
        let arn = format!("arn:aws:sns:r:1:{}", asked.name().unwrap());
        aws_sdk_sns::operation::create_topic::CreateTopicOutput::builder().topic_arn(arn).build()
    });
    let gone = mock!(aws_sdk_sns::Client::publish_batch)
        .sequence()
        .error(|| PublishBatchError::generic(meta("NotFound", "Topic does not exist")))
        .build();
    let there = mock!(aws_sdk_sns::Client::publish_batch).then_output(|| {
        let taken = aws_sdk_sns::types::PublishBatchResultEntry::builder().id("0").message_id("m").build();
        PublishBatchOutput::builder().successful(taken).build()
    });
    let none = mock!(aws_sdk_sns::Client::list_topics).then_output(|| ListTopicsOutput::builder().build());
    let transport = transport(&[], &[&created, &gone, &there, &none]);
    for _ in 0..2 {
        assert_eq!(kinds(&transport.publish(vec![event(1)]).await), [Some(TransportErrorKind::NoRoute)]);
    }
    assert_eq!((created.num_calls(), none.num_calls()), (1, 1), "it was made once, and is looked for");
    tokio::time::sleep(Duration::from_secs(91)).await;
    assert_eq!(kinds(&transport.publish(vec![event(1)]).await), [None]);
    assert_eq!(created.num_calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_credential_is_in_an_error_a_log_or_debug() {
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let says = "IncompleteSignature: Credential=AKIDEXAMPLE/20261126/us-east-1, the secret was hunter2/secret";
    let transport = transport(&[&failing("IncompleteSignature", says)], &[]);
    let answers = transport.publish(vec![command(1, "a")]).await;
    assert_eq!(kinds(&answers), [Some(TransportErrorKind::Unavailable)]);
    let error = answers[0].as_ref().unwrap_err();
    let options = crate::SqsOptions::new("r").access_key("AKIDEXAMPLE", SECRET).endpoint("http://user:hunter2@host");
    for text in [
        error.to_string(),
        format!("{error:?}"),
        format!("{transport:?}"),
        format!("{options:?}"),
        format!("{:?}", transport.health()),
        log.warnings().concat(),
    ] {
        assert!(!text.contains("AKIDEXAMPLE") && !text.contains("hunter2"), "{text}");
    }
    assert!(!log.warnings().is_empty());
}

#[tokio::test]
async fn what_the_options_lack_is_said() {
    let lacks = |options| async {
        let error = crate::SqsTransport::connect_with(options).await.expect_err("something is missing");
        assert_eq!(error.kind(), TransportErrorKind::Refused);
        error.to_string()
    };
    assert!(lacks(crate::SqsOptions::new("r")).await.contains("there is no access key"));
    let bad_prefix = crate::SqsOptions::new("r").access_key("a", "b").prefix("a.b");
    assert!(lacks(bad_prefix).await.contains("contains '.'"));
}
