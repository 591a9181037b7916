//! What a full queue may and may not hold up.

use std::time::Duration;

use saga_core::transport::{Message, Transport as _, TransportError, TransportErrorKind};
use tokio::time::timeout;

use super::bench::{Bench, message, numbers};
use crate::check::{Failed, Outcome, Verdict, ensure, ensure_eq};
use crate::harness::TransportHarness;

const OTHER: &str = "others";
/// A broker may let a limit be passed by some before it says so.
const TRIES: u32 = 500;
/// How long between two looks whether there is room again.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) async fn a_full_queue_is_alone<H: TransportHarness>(bench: Bench<H>) -> Result<Verdict, Failed> {
    let mut full = bench.subscribe_to("a", &[super::bench::TOPIC], 1).await?;
    let mut other = bench.subscribe_to("b", &[OTHER], 10).await?;
    if !bench.harness.limit(&bench.transport, "a", 1).await {
        return Ok(Verdict::NotApplicable("the harness cannot limit a queue"));
    }
    let Some((taken, kind)) = fill(&bench).await? else {
        return Err(Failed(format!("{TRIES} messages fitted into a queue for one")));
    };
    ensure_eq!(kind, TransportErrorKind::Nacked, "what became of a message for a full queue");
    // In one call with messages for the full queue, and in a call of its own.
    let to_other = |number| Message { topic: OTHER.into(), ..message("k", number) };
    let together = bench.publish(vec![message("k", 1_001), to_other(1_002)]);
    ensure_eq!(numbers(&other.accept(1).await?), [1_002], "the other message beside one for a full queue");
    let answers = together.answers().await?;
    let kinds: Vec<_> = answers.iter().map(|answer| answer.as_ref().err().map(TransportError::kind)).collect();
    ensure_eq!(kinds, [Some(TransportErrorKind::Nacked), None], "a full queue and its neighbour");
    let alone = bench.publish(vec![to_other(1_003)]);
    ensure_eq!(numbers(&other.accept(1).await?), [1_003], "the message while another queue was full");
    alone.confirmed().await?;
    // Once there is room, it is taken.
    let mut came = Vec::new();
    while came.len() < taken.len() {
        came.extend(numbers(&full.accept(1).await?));
    }
    let again = async {
        loop {
            let publishing = bench.publish(vec![message("k", 2_000)]);
            match timeout(bench.harness.arrival() / 4, publishing.answers()).await {
                Ok(answers) if answers.as_ref().is_ok_and(|answers| answers.iter().all(Result::is_err)) => {}
                // A transport that answers behind the receiver has it by now.
                _ => return,
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    ensure!(timeout(bench.harness.arrival(), again).await.is_ok(), "a queue with room took nothing");
    loop {
        if numbers(&full.accept(1).await?) == [2_000] {
            return Ok(Verdict::Kept);
        }
    }
}

/// Sends until a message is not taken; answers those that were, and the error's kind. A transport that answers only when a
/// message was accepted has taken what it does not answer.
async fn fill<H: TransportHarness>(bench: &Bench<H>) -> Result<Option<(Vec<u32>, TransportErrorKind)>, Failed> {
    let mut taken = Vec::new();
    for number in 1..=TRIES {
        let publishing = bench.publish(vec![message("k", number)]);
        let answers = match timeout(bench.harness.arrival(), publishing.answers()).await {
            Ok(answers) => answers?,
            Err(_) => vec![Ok(())],
        };
        match answers.into_iter().next() {
            Some(Ok(())) => taken.push(number),
            Some(Err(error)) => return Ok(Some((taken, error.kind()))),
            None => return Err(Failed("a message was not answered".into())),
        }
    }
    Ok(None)
}

pub(crate) async fn what_takes_messages_is_reachable<H: TransportHarness>(bench: Bench<H>) -> Outcome {
    bench.transport.reachable().await?;
    let mut receiver = bench.subscribe("a").await?;
    let publishing = bench.publish(vec![message("k", 1)]);
    receiver.accept(1).await?;
    publishing.confirmed().await?;
    Ok(bench.transport.reachable().await?)
}
