//! Purging: the horizons are enough, and each mistake about them breaks a property.

use std::collections::BTreeSet;

use saga_models::purging::{Mistake, Purging};
use stateright::{Checker, HasDiscoveries, Model};

/// The properties that do not hold, and those that are reached.
fn discoveries(model: Purging) -> (Vec<&'static str>, Vec<&'static str>) {
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!("{} states, {} deep", checker.unique_state_count(), checker.max_depth());
    for (name, path) in checker.discoveries().into_iter().filter(|(name, _)| name.starts_with('G')) {
        println!("{name}: {:?}", path.into_actions());
    }
    let names = checker.discoveries().into_keys();
    names.partition(|name| name.starts_with('G'))
}

/// G2, G5, G13: a message that is held back until it is nearly too old, clocks that differ, a purge that is late, an operator who
/// ends and reopens a saga, and a key that is used again do no harm.
#[test]
fn g13_the_horizons_are_enough() {
    let (broken, reached) = discoveries(Purging::sound());
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(reached.len(), 4, "only these states are reached: {reached:?}");
}

#[test]
fn each_mistake_breaks_what_forbids_it() {
    for (mistake, property) in [
        (Mistake::HostPurgesUntold, "G2 a step takes effect once for a saga"),
        (Mistake::NoMargin, "G13 nothing takes effect for a saga that was purged"),
        (Mistake::ActsOnOldMessages, "G2 a step takes effect once for a saga"),
        (Mistake::ClosesAtTheEnd, "G2 a step takes effect once for a saga"),
        (Mistake::ReusesKeysEarly, "G13 a saga is told of its own step only"),
        (Mistake::ForgetsTheWay, "G13 a saga is told of its own step only"),
        (Mistake::CountsKeysFromTheEnd, "G13 a saga is told of its own step only"),
    ] {
        let found = HasDiscoveries::AllOf(BTreeSet::from([property]));
        let checker = Purging::with(mistake).checker().finish_when(found).spawn_bfs().join();
        let states = checker.unique_state_count();
        let path = checker.discovery(property).unwrap_or_else(|| panic!("{mistake:?} is not found in {states} states"));
        println!("{mistake:?} breaks {property} after {states} states, {} actions", path.into_actions().len());
    }
    assert_eq!(Mistake::ALL.len(), 7);
}
