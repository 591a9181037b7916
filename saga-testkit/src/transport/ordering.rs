//! The order of the messages of one key.

use super::bench::{Bench, message, numbers};
use crate::check::{Outcome, ensure_eq};
use crate::harness::TransportHarness;

const COUNT: u32 = 30;

pub(crate) async fn one_key_comes_in_order<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let transport = std::sync::Arc::clone(&bench.transport);
    let publishing = tokio::spawn(async move {
        for number in 1..=COUNT {
            for answer in saga_core::transport::Transport::publish(&*transport, vec![message("k", number)]).await {
                answer?;
            }
        }
        Ok::<(), saga_core::transport::TransportError>(())
    });
    let came = receiver.accept_one_by_one(COUNT as usize).await?;
    publishing.await??;
    let expected: Vec<u32> = (1..=COUNT).collect();
    ensure_eq!(numbers(&came), expected, "the order of one key");
    Ok(())
}

pub(crate) async fn one_call_keeps_the_order_of_a_key<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    let publishing = bench.publish((1..=COUNT).map(|number| message("k", number)).collect());
    let came = receiver.accept_one_by_one(COUNT as usize).await?;
    publishing.confirmed().await?;
    let expected: Vec<u32> = (1..=COUNT).collect();
    ensure_eq!(numbers(&came), expected, "the order of one key");
    Ok(())
}

pub(crate) async fn many_keys_keep_their_orders<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut receiver = bench.subscribe("a").await?;
    // The keys take turns: key 0 has the numbers 0, 3, 6 and so on.
    let key = |number: u32| format!("k-{}", number % 3);
    let publishing = bench.publish((0..COUNT).map(|number| message(&key(number), number)).collect());
    let came = receiver.accept_one_by_one(COUNT as usize).await?;
    publishing.confirmed().await?;
    for first in 0..3 {
        let of_key: Vec<u32> = numbers(&came).into_iter().filter(|number| number % 3 == first).collect();
        let expected: Vec<u32> = (first..COUNT).step_by(3).collect();
        ensure_eq!(of_key, expected, "the order of key {first}");
    }
    Ok(())
}
