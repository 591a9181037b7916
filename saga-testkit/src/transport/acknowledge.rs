//! What becomes of messages that were accepted, rejected, or neither.

use saga_core::transport::Settlement;

use super::bench::{Bench, TOPIC, message, numbers, tally};
use crate::check::{Outcome, ensure, ensure_eq};
use crate::harness::TransportHarness;

pub(crate) async fn what_was_not_settled_comes_again<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut first = bench.subscribe("a").await?;
    let publishing = bench.publish((1..=3).map(|number| message(&bench.key(number), number)).collect());
    let came = first.gather(3).await?;
    ensure!(came.iter().all(|delivery| !delivery.redelivered), "a first delivery is marked as a redelivery");
    first.settle(&came[..1], Settlement::Accept).await?;
    drop(first);
    let mut second = bench.subscribe("a").await?;
    let again = second.accept(2).await?;
    ensure_eq!(tally(numbers(&again)), [(2, 1), (3, 1)].into(), "the redelivered messages");
    ensure!(again.iter().all(|delivery| delivery.redelivered), "a redelivery is not marked as one: {again:?}");
    publishing.confirmed().await?;
    second.expect_nothing().await
}

pub(crate) async fn what_was_accepted_does_not_come_again<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut first = bench.subscribe("a").await?;
    let publishing = bench.publish((1..=3).map(|number| message(&bench.key(number), number)).collect());
    first.accept(3).await?;
    publishing.confirmed().await?;
    drop(first);
    bench.subscribe("a").await?.expect_nothing().await
}

pub(crate) async fn settling_takes_the_messages_named<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut first = bench.subscribe("a").await?;
    let publishing = bench.publish((1..=4).map(|number| message(&format!("k-{number}"), number)).collect());
    let came = first.gather(4).await?;
    // Not the first ones, and not in their order.
    let settled = [came[3].clone(), came[1].clone()];
    first.settle(&settled, Settlement::Accept).await?;
    drop(first);
    let mut second = bench.subscribe("a").await?;
    let again = tally(numbers(&second.accept(2).await?));
    let expected = tally(numbers(&[came[0].clone(), came[2].clone()]));
    ensure_eq!(again, expected, "what was not settled");
    publishing.confirmed().await
}

pub(crate) async fn a_void_tag_is_settled_without_effect<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut holder = bench.subscribe("a").await?;
    let publishing = bench.publish([1, 2].map(|number| message(&bench.key(number), number)).to_vec());
    let came = holder.gather(2).await?;
    // A receiver that has no message knows no tag; a tag that is settled is known no longer.
    let mut other = bench.subscribe("a").await?;
    other.settle(&came, Settlement::Accept).await?;
    other.settle(&came, Settlement::Reject).await?;
    holder.settle(&came[..1], Settlement::Accept).await?;
    holder.settle(&came[..1], Settlement::Reject).await?;
    drop(holder);
    let again = other.accept(1).await?;
    ensure_eq!(numbers(&again), numbers(&came[1..]), "what its own receiver had not settled");
    publishing.confirmed().await?;
    other.expect_nothing().await
}

pub(crate) async fn what_another_process_had_is_marked<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let beside = bench.harness.beside(&bench.transport).await;
    let mut first = bench.subscribe_on(&beside, "a", &[TOPIC], 10).await?;
    let publishing = bench.publish((1..=4).map(|number| message(&format!("k-{number}"), number)).collect());
    let came = first.gather(4).await?;
    first.settle(&came[1..2], Settlement::Accept).await?;
    // The process ends without a word about the rest.
    drop(first);
    drop(beside);
    let mut second = bench.subscribe("a").await?;
    let mut open = tally(numbers(&[came[0].clone(), came[2].clone(), came[3].clone()]));
    while !open.is_empty() {
        // What was accepted may come again where the transport remembers a place in a log.
        let again = second.accept(1).await?;
        ensure!(again[0].redelivered, "a redelivery of another process is not marked: {again:?}");
        for number in numbers(&again) {
            open.remove(&number);
        }
    }
    publishing.confirmed().await
}

pub(crate) async fn a_rejected_message_comes_again<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let publishing = bench.publish(vec![message("k", 1)]);
    let came = receiver.gather(1).await?;
    receiver.settle(&came, Settlement::Reject).await?;
    let again = receiver.accept(1).await?;
    ensure_eq!(again[0].message, Ok(message("k", 1)), "the redelivered messages");
    ensure!(again[0].redelivered, "a redelivery is not marked as one");
    publishing.confirmed().await?;
    receiver.expect_nothing().await
}

pub(crate) async fn a_message_is_given_up_in_the_end<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let publishing = bench.publish(vec![message("k", 1)]);
    for _ in 0..=bench.harness.rejections_max() {
        let came = receiver.gather(1).await?;
        receiver.settle(&came, Settlement::Reject).await?;
    }
    receiver.expect_nothing().await?;
    // Whether it counts as accepted is the transport's to say; that publishing ends is not.
    ensure_eq!(publishing.answers().await?.len(), 1, "the answers to one message");
    if let Some(given_up) = bench.harness.given_up(&bench.transport).await {
        ensure_eq!(given_up, [b"1".to_vec()], "what was given up, where it can be seen");
    }
    let publishing = bench.publish(vec![message("k", 2)]);
    ensure_eq!(numbers(&receiver.accept(1).await?), [2], "what comes behind a message that was given up");
    publishing.confirmed().await
}

pub(crate) async fn a_rejected_message_holds_up_no_other<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let publishing = bench.publish((1..=3).map(|number| message(&format!("k-{number}"), number)).collect());
    let mut accepted = Vec::new();
    for _ in 0..=bench.harness.rejections_max() + 3 {
        if accepted.len() == 2 {
            break;
        }
        let came = receiver.gather(1).await?;
        let number = numbers(&came);
        let settlement = if number == [1] { Settlement::Reject } else { Settlement::Accept };
        receiver.settle(&came, settlement).await?;
        accepted.extend(number.into_iter().filter(|number| *number != 1));
    }
    ensure_eq!(tally(accepted), [(2, 1), (3, 1)].into(), "the messages beside one that is always rejected");
    drop(publishing);
    Ok(())
}
