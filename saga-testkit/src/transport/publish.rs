//! What publishing promises.

use saga_core::transport::{Message, MessageKind, Settlement, Transport, TransportErrorKind, service_topic};

use super::bench::{Bench, message, numbers, tally};
use crate::check::{Outcome, ensure, ensure_eq};
use crate::harness::TransportHarness;

pub(crate) async fn each_message_is_answered_in_order<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let publishing = bench.publish((1..=5).map(|number| message("k", number)).collect());
    receiver.accept_one_by_one(5).await?;
    let answers = publishing.answers().await?;
    ensure_eq!(answers.len(), 5, "the answers to five messages");
    ensure!(answers.iter().all(Result::is_ok), "a message was refused: {answers:?}");
    Ok(())
}

pub(crate) async fn a_confirmed_message_is_delivered<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let mut came = Vec::new();
    for number in 1..=20 {
        let publishing = bench.publish(vec![message("k", number)]);
        came.extend(receiver.accept(1).await?);
        publishing.confirmed().await?;
    }
    let expected: Vec<u32> = (1..=20).collect();
    ensure_eq!(numbers(&came), expected, "what was received of what was confirmed");
    receiver.expect_nothing().await
}

pub(crate) async fn no_subscriber_is_no_error<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    // There is no subscription, so the transport answers for nothing but its own acceptance.
    let answers = bench.transport.publish(vec![message("k", 1), message("k", 2)]).await;
    ensure_eq!(answers.len(), 2, "the answers to two messages");
    ensure!(answers.iter().all(Result::is_ok), "a message without a subscriber was refused: {answers:?}");
    Ok(())
}

pub(crate) async fn an_empty_call_answers_nothing<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    ensure!(bench.transport.publish(Vec::new()).await.is_empty(), "no message was sent, and something was answered");
    Ok(())
}

pub(crate) async fn a_message_outlives_its_receiver<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    drop(bench.subscribe("a").await?);
    let publishing = bench.publish(vec![message("k", 1), message("k", 2)]);
    let mut receiver = bench.subscribe("a").await?;
    let came = receiver.accept_one_by_one(2).await?;
    ensure_eq!(numbers(&came), [1, 2], "the messages that were sent without a receiver");
    publishing.confirmed().await
}

pub(crate) async fn a_refused_message_is_alone<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let publishing = bench.publish((1..=3).map(|number| message(&format!("k-{number}"), number)).collect());
    let mut accepted = Vec::new();
    // The second message is never taken; the others must be answered with their own results.
    while accepted.len() < 2 {
        for delivery in receiver.gather(1).await? {
            let is_second = numbers(std::slice::from_ref(&delivery)) == [2];
            let settlement = if is_second { Settlement::Reject } else { Settlement::Accept };
            receiver.settle(std::slice::from_ref(&delivery), settlement).await?;
            accepted.extend((!is_second).then_some(delivery));
        }
    }
    let drain = async {
        // Without this the second message would wait for the first to be settled, in a transport that waits for that.
        loop {
            let rejected = receiver.gather(1).await?;
            receiver.settle(&rejected, Settlement::Reject).await?;
        }
    };
    let answers = tokio::select! {
        biased;
        answers = publishing.answers() => answers?,
        ended = drain => {
            let _: Result<(), crate::check::Failed> = ended;
            return Err(crate::check::Failed("the message was given up, and publishing was not answered".into()));
        }
    };
    ensure_eq!(answers.len(), 3, "the answers to three messages");
    ensure!(answers[0].is_ok() && answers[2].is_ok(), "a message was hindered by another: {answers:?}");
    Ok(())
}

pub(crate) async fn the_same_id_is_delivered_again<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    for _ in 0..2 {
        let publishing = bench.publish(vec![message("k", 1)]);
        let came = receiver.accept(1).await?;
        ensure_eq!(came[0].message.as_ref().map(|message| message.id), Ok(message("k", 1).id), "the id");
        publishing.confirmed().await?;
    }
    let publishing = bench.publish(vec![message("k", 1), message("k", 1)]);
    let came = receiver.accept_one_by_one(2).await?;
    ensure_eq!(tally(numbers(&came)), [(1, 2)].into(), "how often a message came that one call sent twice");
    publishing.confirmed().await
}

pub(crate) async fn what_is_for_one_receiver_needs_one<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let topic = service_topic("payments");
    let command = |number| Message { kind: MessageKind::Command, topic: topic.clone(), ..message("k", number) };
    // A neighbour is none of its business.
    let answers = bench.transport.publish(vec![command(1), message("k", 2)]).await;
    ensure_eq!(answers.len(), 2, "the answers to two messages");
    let kind = answers[0].as_ref().err().map(saga_core::transport::TransportError::kind);
    ensure_eq!(kind, Some(TransportErrorKind::NoRoute), "the error of a command without a subscriber");
    ensure!(answers[1].is_ok(), "an event was hindered: {answers:?}");
    let mut receiver = bench.subscribe_to(&topic, &[&topic], 10).await?;
    let publishing = bench.publish(vec![command(3)]);
    ensure_eq!(numbers(&receiver.accept(1).await?), [3], "the messages after a receiver subscribed");
    publishing.confirmed().await?;
    receiver.expect_nothing().await
}
