//! What one process tells the others.

use std::time::Duration;

use saga_core::store::{Hint, Hints, Listener};

use crate::check::{Failed, Outcome, ensure_eq};
use crate::fixture::Bench;
use crate::harness::StoreHarness;

/// A hint that has not come by now will not come.
const LOST_AFTER: Duration = Duration::from_secs(15);
/// What is heard without cause, as when a connection is made, can stand for one hint and not for all of these.
const ROUNDS: usize = 3;

/// Waits for this hint, whatever else comes before.
async fn hear(listener: &mut Box<dyn Listener>, wanted: Hint) -> Result<(), Failed> {
    let heard = async { while listener.next_hint().await != wanted {} };
    let heard = tokio::time::timeout(LOST_AFTER, heard).await;
    heard.map_err(|_| Failed(format!("the hint {wanted:?} did not come")))
}

fn listener<H: StoreHarness>(store: &H::Store) -> Result<Box<dyn Listener>, Failed> {
    store.listen().ok_or_else(|| Failed("the store has hints at one time and none at another".into()))
}

pub(crate) async fn another_process_hears_of_what_was_committed<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let other = bench.harness.beside(&bench.store).await;
    let other = other.ok_or_else(|| Failed("a store with hints has no second process".into()))?;
    let mut listener = listener::<H>(&other)?;
    for round in 0..ROUNDS {
        bench.start(&format!("k-{round}")).await?;
        bench.store.hint(Hint::Work);
        hear(&mut listener, Hint::Work).await?;
        let claimed = bench.claim(bench.lease().await?, 10).await?.work;
        ensure_eq!(claimed.len(), 1, "the rows that were there when the hint came in round {round}");
    }
    Ok(())
}

pub(crate) async fn each_of_several_hears_every_kind_of_hint<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut others = Vec::new();
    for _ in 0..2 {
        let other = bench.harness.beside(&bench.store).await;
        let other = other.ok_or_else(|| Failed("a store with hints has no second process".into()))?;
        others.push((listener::<H>(&other)?, other));
    }
    for hint in std::iter::repeat_n(Hint::ALL, ROUNDS).flatten() {
        bench.store.hint(hint);
        for (listener, _) in &mut others {
            hear(listener, hint).await?;
        }
    }
    Ok(())
}
