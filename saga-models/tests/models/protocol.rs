//! The models are looked through to their end: what the guarantees say holds in every state, and what must be reached is.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use saga_models::{Bounds, Protocol, SOMETIMES, World};
use stateright::{Checker, Model};

#[test]
fn the_guarantees_hold_in_every_state() {
    let mut missing: BTreeSet<&str> = SOMETIMES.iter().map(|(name, _)| *name).collect();
    let interesting = missing.clone();
    let mut all = 0;
    for (name, bounds) in Bounds::all() {
        let checker = Protocol::new(bounds).checker().threads(2).spawn_bfs().join();
        let (states, depth) = (checker.unique_state_count(), checker.max_depth());
        println!("{name}: {states} states, {depth} deep");
        all += states;
        for (property, path) in checker.discoveries() {
            assert!(interesting.contains(property), "{name}: {property} does not hold:\n{path:?}");
            missing.remove(property);
        }
    }
    println!("{all} states in all");
    assert!(missing.is_empty(), "no model reaches: {missing:?}");
}

/// What does not end would then stand still in some state, which is looked for, and not go round in circles.
#[test]
fn no_run_comes_back_to_a_state() {
    for (name, bounds) in Bounds::all() {
        let model = Protocol::new(bounds);
        if let Some(state) = circle(&model) {
            panic!("{name}: a run comes back to this state:\n{state:#?}");
        }
    }
}

/// A state that a run comes back to. The states of the present run are marked with `true`, those that all runs from were
/// looked through with `false`.
fn circle(model: &Protocol) -> Option<World> {
    let mut marks = HashMap::new();
    let mut run: Vec<(World, Vec<World>)> = Vec::new();
    for state in model.init_states() {
        marks.insert(fingerprint(&state), true);
        let next = model.next_states(&state);
        run.push((state, next));
    }
    while let Some((state, next)) = run.last_mut() {
        let Some(next) = next.pop() else {
            marks.insert(fingerprint(state), false);
            run.pop();
            continue;
        };
        match marks.get(&fingerprint(&next)) {
            Some(true) => return Some(next),
            Some(false) => {}
            None => {
                marks.insert(fingerprint(&next), true);
                let behind = model.next_states(&next);
                run.push((next, behind));
            }
        }
    }
    None
}

fn fingerprint(state: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}
