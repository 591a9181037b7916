//! From commit to receipt: one message at a time, on servers that have nothing else to do.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use saga_core::step::{Event, StepContext};
use saga_core::store::{Hint, Hints as _};
use saga_core::transport::{Incoming, Settlement, Transport};
use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::outbox::{EVENT, TOPIC, commit, message};
use super::sent::subscription;
use crate::clock::micros_since_1970;

/// How long a message may take before something is broken.
const RECEIPT_MAX: Duration = Duration::from_secs(10);
/// The pauses between two messages are spread over this, so that they meet a poll at any moment of its interval.
const PAUSE_MAX_MILLIS: u32 = 100;
/// The golden ratio, in thousandths: its multiples spread evenly.
const GOLDEN: u32 = 618;

/// What the step tells.
#[derive(Serialize, Deserialize)]
struct Noted {
    text: String,
}

impl Event for Noted {
    const NAME: &'static str = EVENT;
}

/// It writes nothing itself, and tells of it.
#[saga_step(no_compensation)]
async fn note(_tx: &mut PgConnection, ctx: &StepContext, bytes: usize) -> Result<(), StepError> {
    ctx.emit(&Noted { text: "x".repeat(bytes) })
}

/// Where a message is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Committer {
    /// By a step of the process that relays.
    SameProcess,
    /// By a process that shares only the database with the relay, and sends it no hint.
    Other,
    /// By the same, who tells the others behind the commit.
    OtherTells,
}

/// From commit to receipt, in milliseconds, by a process with the first of two connections to one database; the second is another
/// process's. The time runs from when the database writes the row, so the commit itself is in it.
pub(crate) async fn run(
    [own, other]: [PostgresStore; 2],
    transport: Arc<dyn Transport>,
    committer: Committer,
    messages: u32,
    bytes: usize,
) -> Result<Vec<f64>> {
    let saga: Saga<PostgresStore, usize> = Saga::named(TOPIC).input::<usize>().step::<note>().build()?;
    let mut incoming = transport.subscribe(subscription(1)).await?;
    let runtime = Runtime::builder(own).transport(transport).saga(&saga).start().await?;
    let mut took = Vec::new();
    for number in 0..messages {
        tokio::time::sleep(pause(number)).await;
        match committer {
            Committer::SameProcess => {
                let running = runtime.start(&saga, format!("order-{number}"), bytes).await?;
                took.push(receive(&mut *incoming).await?);
                let outcome = running.outcome().await?;
                ensure!(matches!(outcome, Outcome::Completed { .. }), "order {number} ended as {outcome}");
            }
            Committer::Other | Committer::OtherTells => {
                commit(&other, vec![message(number, 1, bytes)]).await?;
                if committer == Committer::OtherTells {
                    other.hint(Hint::Outbox);
                }
                took.push(receive(&mut *incoming).await?);
            }
        }
    }
    runtime.shutdown().await;
    Ok(took)
}

/// The pause before the message of that number.
pub(crate) fn pause(number: u32) -> Duration {
    Duration::from_millis(u64::from(number * GOLDEN % 1_000 * PAUSE_MAX_MILLIS / 1_000))
}

/// Receives one message; answers how long ago the database wrote it.
async fn receive(incoming: &mut dyn Incoming) -> Result<f64> {
    let came = tokio::time::timeout(RECEIPT_MAX, incoming.receive(1)).await;
    let delivery = came.context("a message did not arrive")??.pop().context("an empty delivery")?;
    let now = micros_since_1970();
    incoming.settle(&[(delivery.tag, Settlement::Accept)]).await?;
    #[expect(clippy::cast_precision_loss, reason = "a few seconds in microseconds")]
    let micros = (now - delivery.message?.committed_at.0) as f64;
    Ok(micros / 1e3)
}
