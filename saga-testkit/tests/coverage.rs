//! Every clause of the contracts has a check, and every check cites a clause that there is.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "the sources of the contract are beside this crate")]

use std::collections::BTreeSet;
use std::path::Path;

use saga_testkit::{MemoryHarness, clauses_in, start_in_checks, store_checks, transport_checks};

/// The clauses that stand in the sources of a contract, a number that is used twice twice.
fn clauses_of(contract: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../saga-core/src").join(contract);
    let files = std::fs::read_dir(&folder).expect("the folder of the contract").map(|entry| entry.unwrap().path());
    files.flat_map(|file| clauses_in(&std::fs::read_to_string(file).unwrap())).collect()
}

/// The numbers that more than one clause has: a check that cites one of them says of neither that it is covered.
fn defined_twice(defined: &[String]) -> BTreeSet<&String> {
    let mut seen = BTreeSet::new();
    defined.iter().filter(|clause| !seen.insert(*clause)).collect()
}

fn same(contract: &str, checked: impl Iterator<Item = &'static str>) {
    let checked: BTreeSet<String> = checked.map(str::to_owned).collect();
    let defined = clauses_of(contract);
    assert!(!defined.is_empty(), "no clause was found in {contract}");
    let twice = defined_twice(&defined);
    assert!(twice.is_empty(), "numbers that two clauses of {contract} have: {twice:?}");
    let written: BTreeSet<String> = defined.into_iter().collect();
    let unchecked: Vec<&String> = written.difference(&checked).collect();
    let unwritten: Vec<&String> = checked.difference(&written).collect();
    assert!(unchecked.is_empty(), "clauses of {contract} without a check: {unchecked:?}");
    assert!(unwritten.is_empty(), "checks of {contract} cite clauses that are not written: {unwritten:?}");
}

#[test]
fn every_clause_of_a_store_is_checked() {
    let (store, start_in) = (store_checks::<MemoryHarness>(), start_in_checks::<MemoryHarness>());
    same("store", store.iter().chain(&start_in).flat_map(|check| check.clauses).copied());
}

#[test]
fn every_clause_of_a_transport_is_checked() {
    same("transport", transport_checks::<MemoryHarness>().iter().flat_map(|check| check.clauses).copied());
}

#[test]
fn a_number_of_two_clauses_is_noticed() {
    let contract = "/// - `S-TX-1` One.\n/// - `S-TX-2` Another, as `S-TX-1` says.\n/// - `S-TX-1` A third.\n";
    let defined = clauses_in(contract);
    assert_eq!(defined_twice(&defined).into_iter().collect::<Vec<_>>(), ["S-TX-1"]);
}

#[test]
fn no_two_checks_have_one_name() {
    let mut ids: Vec<String> = store_checks::<MemoryHarness>().iter().map(saga_testkit::Check::id).collect();
    ids.extend(start_in_checks::<MemoryHarness>().iter().map(saga_testkit::Check::id));
    ids.extend(transport_checks::<MemoryHarness>().iter().map(saga_testkit::Check::id));
    let different: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), ids.len());
}
