//! Who gets which message.

use super::bench::{Bench, TOPIC, message, numbers, tally};
use crate::check::{Outcome, ensure, ensure_eq};
use crate::harness::TransportHarness;

pub(crate) async fn every_name_gets_every_message<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receivers = Vec::new();
    for name in ["a", "b", "c"] {
        receivers.push(bench.subscribe(name).await?);
    }
    let publishing = bench.publish((1..=4).map(|number| message("k", number)).collect());
    for receiver in &mut receivers {
        ensure_eq!(numbers(&receiver.accept_one_by_one(4).await?), [1, 2, 3, 4], "what one of three names received");
    }
    publishing.confirmed().await?;
    receivers[0].expect_nothing().await
}

pub(crate) async fn one_of_a_name_gets_each_message<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut one = bench.subscribe_to("a", &[TOPIC], 3).await?;
    let mut two = bench.subscribe_to("a", &[TOPIC], 3).await?;
    let publishing = bench.publish((1..=6).map(|number| message(&format!("k-{number}"), number)).collect());
    // Each has room for three, so that neither can take all.
    let (first, second) = (one.gather(3).await?, two.gather(3).await?);
    let all = tally(numbers(&first).into_iter().chain(numbers(&second)));
    let expected = (1..=6).map(|number| (number, 1)).collect();
    ensure_eq!(all, expected, "how often each message came to two receivers of one name");
    for (receiver, came) in [(&mut one, &first), (&mut two, &second)] {
        receiver.settle(came, saga_core::transport::Settlement::Accept).await?;
    }
    publishing.confirmed().await
}

pub(crate) async fn only_its_topics_are_received<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let mut other = message("k", 1);
    other.topic = "refunds".into();
    let publishing = bench.publish(vec![other, message("k", 2)]);
    ensure_eq!(numbers(&receiver.accept(1).await?), [2], "what was received");
    publishing.confirmed().await?;
    receiver.expect_nothing().await
}

pub(crate) async fn several_topics_are_received<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe_to("a", &[TOPIC, "refunds"], 10).await?;
    let mut refund = message("k", 2);
    refund.topic = "refunds".into();
    let publishing = bench.publish(vec![message("k", 1), refund]);
    let came = receiver.accept(2).await?;
    ensure_eq!(tally(numbers(&came)), [(1, 1), (2, 1)].into(), "what was received of two topics");
    publishing.confirmed().await
}

pub(crate) async fn another_process_receives<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let beside = bench.harness.beside(&bench.transport).await;
    let mut receiver = bench.subscribe_on(&beside, "a", &[TOPIC], 10).await?;
    let publishing = bench.publish(vec![message("k", 1)]);
    ensure_eq!(numbers(&receiver.accept(1).await?), [1], "what another connection received");
    publishing.confirmed().await
}

pub(crate) async fn a_receiver_waits_for_what_comes<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let waiting = tokio::spawn(async move { receiver.accept(1).await });
    tokio::task::yield_now().await;
    let publishing = bench.publish(vec![message("k", 1)]);
    ensure_eq!(numbers(&waiting.await??), [1], "what a receiver got that was waiting");
    publishing.confirmed().await
}

pub(crate) async fn a_dropped_receive_loses_nothing<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    for number in 1..=10 {
        let publishing = bench.publish(vec![message("k", number)]);
        // The call is dropped at once, or when it has been polled once.
        tokio::select! {
            biased;
            came = receiver.incoming.receive(1) => {
                let came = came?;
                ensure_eq!(numbers(&came), [number], "what was received");
                receiver.settle(&came, saga_core::transport::Settlement::Accept).await?;
                publishing.confirmed().await?;
                continue;
            }
            () = tokio::task::yield_now() => {}
        }
        let came = receiver.accept(1).await?;
        ensure!(numbers(&came) == [number], "a receive that was dropped lost message {number}: {came:?}");
        publishing.confirmed().await?;
    }
    Ok(())
}
