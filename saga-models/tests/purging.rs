//! Purging: the horizons are enough, and each mistake about them breaks a property.

use saga_models::purging::{Mistake, Purging};
use stateright::{Checker, Model};

/// The properties that do not hold, and those that are reached.
fn discoveries(model: Purging) -> (Vec<&'static str>, Vec<&'static str>) {
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!("{} states, {} deep", checker.unique_state_count(), checker.max_depth());
    let names = checker.discoveries().into_keys();
    names.partition(|name| name.starts_with('G'))
}

/// G2, G5, G13: a message that is held back until it is nearly too old, clocks that differ, a purge that is late, an operator who
/// ends and reopens a saga, and a key that is used again do no harm.
#[test]
fn g13_the_horizons_are_enough() {
    let (broken, reached) = discoveries(Purging::sound());
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(reached.len(), 5, "only these states are reached: {reached:?}");
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
        let (broken, _) = discoveries(Purging::with(mistake));
        println!("{mistake:?} breaks {broken:?}");
        assert!(broken.contains(&property), "{mistake:?} breaks {broken:?}");
    }
    assert_eq!(Mistake::ALL.len(), 7);
}
