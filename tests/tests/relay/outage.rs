use std::time::Duration;

use saga_core::memory::MemoryStore;

use crate::moody::{Mood, Moody};
use crate::{create_order, orders, parked, payments};

/// How long a broker that is away takes to be found so: longer than a quarter of the shortest lease.
const AWAY_AFTER: Duration = Duration::from_secs(5);

fn away() -> Mood {
    Mood { is_away: true, away_after: AWAY_AFTER, ..Mood::default() }
}

#[tokio::test(start_paused = true)]
async fn g8_an_outage_is_no_message_s_fault_however_short_the_lease() {
    let (store, host, transport) = (MemoryStore::new(), MemoryStore::new(), Moody::default());
    let _payments = payments(&host, &transport).await;
    let short = |settings: &mut saga_core::Settings| {
        (settings.lease_ttl, settings.member_ttl) = (Duration::from_secs(3), Duration::from_secs(3));
    };
    let runtime = orders(&store, &transport, short).await;
    transport.set(away());
    let running = runtime.start(&create_order(), "o-1", 12).await.unwrap();
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(parked(&runtime).await, [], "an outage parks nothing");
    }
    assert!(!runtime.health().is_healthy());
    transport.set(Mood::default());
    let ended = tokio::time::timeout(Duration::from_secs(10), running.outcome()).await;
    assert_eq!(ended.expect("it goes on at once").unwrap().to_string(), "completed");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_cut_off_from_the_broker_leaves_the_lanes_to_others() {
    let (store, host) = (MemoryStore::new(), MemoryStore::new());
    let transport = Moody::default();
    // The same broker, from a process that will be cut off.
    let cut_off = Moody::around(transport.inner.clone());
    let _payments = payments(&host, &transport).await;
    let lonely = orders(&store, &cut_off, |_| {}).await;
    let _healthy = orders(&store, &transport, |_| {}).await;
    cut_off.set(away());
    // Its first message finds out; the lanes are free again by then.
    let first = lonely.start(&create_order(), "o-0", 12).await.unwrap();
    assert_eq!(first.outcome().await.unwrap().to_string(), "completed");
    tokio::time::sleep(Duration::from_secs(30)).await;
    let calls = cut_off.calls();
    for number in 1..20 {
        let running = lonely.start(&create_order(), format!("o-{number}"), 12).await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(2), running.outcome()).await;
        assert_eq!(ended.expect("the healthy process sends it").unwrap().to_string(), "completed");
    }
    assert_eq!(cut_off.calls(), calls, "a process that is cut off tries nothing that needs lanes");
}
