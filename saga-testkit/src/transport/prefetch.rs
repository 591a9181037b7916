//! How many messages are under way.

use saga_core::transport::Settlement;

use super::bench::{Bench, TOPIC, message, numbers, tally};
use crate::check::{Outcome, ensure, ensure_eq};
use crate::harness::TransportHarness;

fn apart(count: u32) -> Vec<saga_core::transport::Message> {
    (1..=count).map(|number| message(&format!("k-{number}"), number)).collect()
}

pub(crate) async fn no_more_than_prefetch_is_delivered<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe_to("a", &[TOPIC], 2).await?;
    let publishing = bench.publish(apart(5));
    let mut seen = Vec::new();
    while seen.len() < 5 {
        let expected = 2.min(5 - seen.len());
        let came = receiver.gather(expected).await?;
        if came.len() == 2 {
            receiver.expect_nothing().await?;
        }
        receiver.settle(&came, Settlement::Accept).await?;
        seen.extend(numbers(&came));
    }
    ensure_eq!(tally(seen), (1..=5).map(|number| (number, 1)).collect(), "what was delivered, two at a time");
    publishing.confirmed().await
}

pub(crate) async fn a_limit_is_obeyed<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let publishing = bench.publish(apart(6));
    let mut seen = Vec::new();
    while seen.len() < 6 {
        let came = receiver.incoming.receive(2).await?;
        ensure!((1..=2).contains(&came.len()), "a receive of at most 2 answered {}", came.len());
        seen.extend(came);
    }
    receiver.settle(&seen, Settlement::Accept).await?;
    ensure_eq!(tally(numbers(&seen)), (1..=6).map(|number| (number, 1)).collect(), "what was received");
    publishing.confirmed().await
}

pub(crate) async fn a_full_receiver_leaves_the_rest_to_others<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut full = bench.subscribe_to("a", &[TOPIC], 1).await?;
    let publishing = bench.publish(apart(4));
    let held = full.gather(1).await?;
    let mut other = bench.subscribe("a").await?;
    let rest = other.accept(3).await?;
    let all = numbers(&held).into_iter().chain(numbers(&rest));
    ensure_eq!(tally(all), (1..=4).map(|number| (number, 1)).collect(), "what both received");
    full.settle(&held, Settlement::Accept).await?;
    publishing.confirmed().await
}
