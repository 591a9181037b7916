//! All states of a model, and what is found in them.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model};

/// The rules that do not hold in all states of a model, and what is reached besides.
pub(crate) fn judged<M>(model: M, is_rule: fn(&str) -> bool) -> (Vec<&'static str>, Vec<&'static str>)
where
    M: Model<State: Hash + Debug + Send + Sync + Clone + PartialEq, Action: Debug + Clone + PartialEq>
        + Send
        + Sync
        + 'static,
{
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!("{} states, {} deep", checker.unique_state_count(), checker.max_depth());
    for (name, path) in checker.discoveries().into_iter().filter(|(name, _)| is_rule(name)) {
        println!("{name}: {:?}", path.into_actions());
    }
    checker.discoveries().into_keys().partition(|name| is_rule(name))
}

/// A mistake that is planted in a model breaks this property.
pub(crate) fn finds<M>(model: M, mistake: impl Debug, property: &'static str)
where
    M: Model<State: Hash + Debug + Send + Sync + Clone + PartialEq, Action: Debug + Clone + PartialEq>
        + Send
        + Sync
        + 'static,
{
    let found = HasDiscoveries::AllOf(BTreeSet::from([property]));
    let checker = model.checker().finish_when(found).spawn_bfs().join();
    let states = checker.unique_state_count();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{mistake:?} is not found in {states} states"));
    println!("{mistake:?} breaks {property} after {states} states, {} actions", path.into_actions().len());
}
