//! The models are looked through to their end: what must hold does, and what must be reached is.

use std::collections::BTreeSet;
use std::time::Instant;

use saga_models::{Bounds, Protocol, SOMETIMES};
use stateright::{Checker, Model};

/// Looks through a whole model, and answers what it reached of the interesting states.
fn looked_through(name: &str, bounds: Bounds) -> BTreeSet<&'static str> {
    let began = Instant::now();
    let checker = Protocol::new(bounds).checker().threads(2).spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    println!("{name}: {states} states, {depth} deep, {:.1} s", began.elapsed().as_secs_f32());
    let reached: BTreeSet<&str> = SOMETIMES.iter().map(|(name, _)| *name).collect();
    for (property, path) in checker.discoveries() {
        assert!(reached.contains(property), "{name}: {property} does not hold:\n{path:?}");
    }
    checker.discoveries().into_keys().filter(|property| reached.contains(property)).collect()
}

#[test]
fn sticky() {
    println!("{:?}", looked_through("sticky", Bounds::sticky()));
}
#[test]
fn stranger() {
    println!("{:?}", looked_through("stranger", Bounds::stranger()));
}
#[test]
fn lossy() {
    println!("{:?}", looked_through("lossy", Bounds::lossy()));
}
#[test]
fn alone() {
    println!("{:?}", looked_through("alone", Bounds::alone()));
}
