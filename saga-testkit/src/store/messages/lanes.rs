//! The lanes of the outbox, which relays lease.

use std::collections::BTreeSet;

use saga_core::store::{LANES, Lease, LeasedLane, Members, Outbox, lane_of};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, HOUR};
use crate::harness::StoreHarness;

async fn lanes<H: StoreHarness>(bench: &Bench<H>, lease: Lease) -> Result<Vec<LeasedLane>, Failed> {
    Ok(bench.store.lease_lanes(lease, usize::from(LANES)).await?)
}

async fn one_lane<H: StoreHarness>(bench: &Bench<H>, lease: Lease) -> Result<LeasedLane, Failed> {
    match lanes(bench, lease).await?[..] {
        [lane] => Ok(lane),
        ref other => Err(Failed(format!("expected to lease exactly one lane, got {other:?}"))),
    }
}

/// Ordering keys that lie in different lanes.
fn keys_apart(begun: &Begun, count: usize) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let keys = (0..).map(|number: u32| format!("o-{number}"));
    keys.filter(|key| seen.insert(lane_of(&begun.tenant, "order", key))).take(count).collect()
}

pub(crate) async fn only_lanes_with_rows_are_leased<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    ensure_eq!(lanes(&bench, bench.lease().await?).await?, [], "the lanes of an empty outbox");
    let begun = bench.start("k-1").await?;
    let keys = keys_apart(&begun, 3);
    for key in &keys {
        bench.send(&begun, key, &[1]).await?;
    }
    let leased = lanes(&bench, bench.lease().await?).await?;
    let leased: BTreeSet<u8> = leased.iter().map(|lane| lane.lane).collect();
    let expected: BTreeSet<u8> = keys.iter().map(|key| lane_of(&begun.tenant, "order", key)).collect();
    ensure_eq!(leased, expected, "the lanes that have a row");
    Ok(())
}

pub(crate) async fn a_lane_has_one_owner<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    for key in keys_apart(&begun, 3) {
        bench.send(&begun, &key, &[1]).await?;
    }
    let first = bench.store.lease_lanes(bench.lease().await?, 2).await?;
    let second = bench.store.lease_lanes(bench.lease().await?, 2).await?;
    ensure_eq!((first.len(), second.len()), (2, 1), "three lanes for two relays that want two each");
    let all: BTreeSet<u8> = first.iter().chain(&second).map(|lane| lane.lane).collect();
    ensure_eq!(all.len(), 3, "different lanes");
    Ok(())
}

pub(crate) async fn a_released_lane_is_leased_under_the_next_epoch<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.send(&begun, "o-1", &[1]).await?;
    let first = one_lane(&bench, bench.lease().await?).await?;
    bench.store.release_lanes(&[first]).await?;
    let second = one_lane(&bench, bench.lease().await?).await?;
    ensure_eq!((second.lane, second.epoch), (first.lane, first.epoch + 1), "the lane and its epoch");
    // The first owner's lane is another's now: it cannot free it.
    bench.store.release_lanes(&[first]).await?;
    ensure_eq!(lanes(&bench, bench.lease().await?).await?, [], "the lanes that a stale release freed");
    Ok(())
}

pub(crate) async fn a_lane_of_a_vanished_owner_is_free<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.send(&begun, "o-1", &[1]).await?;
    let ended = one_lane(&bench, bench.short_lease().await?).await?;
    bench.outlast_lease().await;
    let left = bench.lease().await?;
    let second = one_lane(&bench, left).await?;
    ensure!(second.epoch > ended.epoch, "the epoch of a lane that was taken did not grow");
    bench.store.leave(left.owner).await?;
    let bench = bench.reopen().await?;
    let third = one_lane(&bench, bench.lease().await?).await?;
    ensure!(third.epoch > second.epoch, "the epoch of a lane that was taken did not grow");
    Ok(())
}

pub(crate) async fn a_renewed_lane_lasts<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.send(&begun, "o-1", &[1]).await?;
    let short = bench.short_lease().await?;
    let lane = one_lane(&bench, short).await?;
    let stale = LeasedLane { epoch: lane.epoch - 1, ..lane };
    let renewed = bench.store.renew_lanes(&[stale, lane], Lease { ttl: HOUR, ..short }).await?;
    ensure_eq!(renewed, [false, true], "whether the lanes are still held");
    bench.outlast_lease().await;
    ensure_eq!(lanes(&bench, bench.lease().await?).await?, [], "the lanes that are free");
    Ok(())
}

pub(crate) async fn a_lane_whose_epoch_moved_reads_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.send(&begun, "o-1", &[1]).await?;
    let first = one_lane(&bench, bench.lease().await?).await?;
    ensure_eq!(bench.store.read_lane(first, 10).await?.len(), 1, "what the owner reads");
    bench.store.release_lanes(&[first]).await?;
    let second = one_lane(&bench, bench.lease().await?).await?;
    ensure_eq!(bench.store.read_lane(first, 10).await?, [], "what the old owner reads");
    ensure_eq!(bench.store.read_lane(second, 10).await?.len(), 1, "what the new owner reads");
    Ok(())
}

pub(crate) async fn a_lane_that_its_owner_lost_track_of_is_leased_again<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.send(&begun, "o-1", &[1]).await?;
    let lease = bench.lease().await?;
    // As if the answer to this had not come.
    let lost = one_lane(&bench, lease).await?;
    ensure_eq!(lanes(&bench, bench.lease().await?).await?, [], "the lanes that are free for another");
    let again = one_lane(&bench, lease).await?;
    ensure_eq!((again.lane, again.epoch), (lost.lane, lost.epoch + 1), "the lane and its epoch");
    Ok(())
}
