//! Holds in Redis: the protocol is enough, and each mistake breaks a property.

use std::collections::BTreeSet;

use saga_models::over_redis::{Mistake, OverRedis};
use stateright::{Checker, HasDiscoveries, Model};

/// R-CAPACITY, R-DURABLE, R-KEY: flushes, crashes and holds that expire do no harm at any point.
#[test]
fn holds_in_redis_are_confirmed_by_sql() {
    let checker = OverRedis::sound().checker().threads(2).spawn_bfs().join();
    println!("{} states, {} deep", checker.unique_state_count(), checker.max_depth());
    for (name, path) in checker.discoveries().into_iter().filter(|(name, _)| name.starts_with("R-")) {
        println!("{name}: {:?}", path.into_actions());
    }
    let names = checker.discoveries().into_keys();
    let (broken, reached): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("R-"));
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(reached.len(), 3, "only these states are reached: {reached:?}");
}

#[test]
fn each_mistake_breaks_what_forbids_it() {
    for (mistake, property) in [
        (Mistake::RedisConfirmedFirst, "R-DURABLE what was answered as confirmed is in SQL"),
        (Mistake::MarkExpires, "R-CAPACITY without a flush no more is taken than there is"),
        (Mistake::ToldInAnyEpoch, "R-CAPACITY Redis never believes that more is free"),
        (Mistake::ToldInAnyOrder, "R-CAPACITY Redis never believes that more is free"),
        (Mistake::NoFence, "R-KEY a key that is confirmed is not held again"),
    ] {
        let found = HasDiscoveries::AllOf(BTreeSet::from([property]));
        let checker = OverRedis::with(mistake).checker().finish_when(found).spawn_bfs().join();
        let states = checker.unique_state_count();
        let path = checker.discovery(property).unwrap_or_else(|| panic!("{mistake:?} is not found in {states} states"));
        println!("{mistake:?} breaks {property} after {states} states, {} actions", path.into_actions().len());
    }
    assert_eq!(Mistake::ALL.len(), 5);
}
