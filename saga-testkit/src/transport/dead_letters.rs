//! What a transport gave up.

use saga_core::transport::{Delivery, Settlement};

use super::bench::{Bench, Publishing, Receiver, message, numbers};
use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::harness::TransportHarness;

/// Has a message given up that a receiver gets as a dead letter.
async fn give_up<H: TransportHarness>(
    bench: &Bench<H>,
    receiver: &mut Receiver<H>,
    number: u32,
) -> Result<Publishing, Failed> {
    let publishing = bench.publish(vec![message("k", number)]);
    for _ in 0..=bench.harness.rejections_max() {
        let came = receiver.gather(1).await?;
        receiver.settle(&came, Settlement::Reject).await?;
    }
    Ok(publishing)
}

fn is_whole(delivery: &Delivery, number: u32) -> Outcome {
    ensure_eq!(delivery.message, Ok(message("k", number)), "the dead letter");
    let Some(death) = &delivery.dead_letter else { return Err(Failed("a dead letter does not say why".into())) };
    ensure!(!death.queue.is_empty() && !death.reason.is_empty(), "a dead letter does not say why: {death:?}");
    ensure!(death.deliveries > 1, "a dead letter does not say how often it was delivered: {death:?}");
    Ok(())
}

pub(crate) async fn what_was_given_up_is_received<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut dead = bench.dead_letters("a").await?;
    let mut receiver = bench.subscribe("a").await?;
    let publishing = give_up(&bench, &mut receiver, 1).await?;
    is_whole(&dead.accept(1).await?[0], 1)?;
    ensure_eq!(publishing.answers().await?.len(), 1, "the answers to one message");
    receiver.expect_nothing().await?;
    dead.expect_nothing().await
}

pub(crate) async fn a_dead_letter_that_is_not_accepted_comes_again<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let mut dead = bench.dead_letters("a").await?;
    let mut receiver = bench.subscribe("a").await?;
    let publishing = give_up(&bench, &mut receiver, 1).await?;
    for settlement in [None, Some(Settlement::Reject)] {
        let came = dead.gather(1).await?;
        is_whole(&came[0], 1)?;
        if let Some(settlement) = settlement {
            dead.settle(&came, settlement).await?;
        } else {
            drop(dead);
            dead = bench.dead_letters("a").await?;
        }
    }
    is_whole(&dead.accept(1).await?[0], 1)?;
    ensure_eq!(publishing.answers().await?.len(), 1, "the answers to one message");
    dead.expect_nothing().await
}

pub(crate) async fn nothing_else_is_a_dead_letter<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    let (mut dead, mut other) = (bench.dead_letters("a").await?, bench.dead_letters("b").await?);
    let mut receiver = bench.subscribe("a").await?;
    let taken = bench.publish(vec![message("k", 1)]);
    let came = receiver.accept(1).await?;
    ensure_eq!((numbers(&came), &came[0].dead_letter), (vec![1], &None), "a message that is no dead letter");
    taken.confirmed().await?;
    let publishing = give_up(&bench, &mut receiver, 2).await?;
    other.expect_nothing().await?;
    is_whole(&dead.accept(1).await?[0], 2)?;
    ensure_eq!(publishing.answers().await?.len(), 1, "the answers to one message");
    Ok(())
}
