//! Every clause of the contracts has a check, and every check cites a clause that there is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use saga_testkit::{MemoryHarness, clauses_in, start_in_checks, store_checks, transport_checks};

/// The clauses that stand in the sources of a contract, a number that is used twice twice.
fn clauses_of(contract: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../saga-core/src").join(contract);
    let files = files_below(&folder);
    files.iter().flat_map(|file| clauses_in(&std::fs::read_to_string(file).unwrap())).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of the contract").map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The numbers that more than one clause has: a check that cites one of them says of neither that it is covered.
fn defined_twice(defined: &[String]) -> BTreeSet<&String> {
    let mut seen = BTreeSet::new();
    defined.iter().filter(|clause| !seen.insert(*clause)).collect()
}

/// What is wrong between the clauses of a contract and those that the checks cite.
fn problems(defined: &[String], checked: &[&str]) -> Vec<String> {
    let (written, cited): (BTreeSet<&str>, BTreeSet<&str>) =
        (defined.iter().map(String::as_str).collect(), checked.iter().copied().collect());
    let twice = defined_twice(defined).into_iter().map(|clause| format!("{clause} is the number of two clauses"));
    let unchecked = written.difference(&cited).map(|clause| format!("{clause} has no check"));
    let unwritten = cited.difference(&written).map(|clause| format!("{clause} is cited by a check and is not written"));
    twice.chain(unchecked).chain(unwritten).collect()
}

fn same(contract: &str, checked: impl Iterator<Item = &'static str>) {
    let (defined, checked) = (clauses_of(contract), checked.collect::<Vec<_>>());
    assert!(!defined.is_empty(), "no clause was found in {contract}");
    assert_eq!(problems(&defined, &checked), Vec::<String>::new());
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

/// A clause under a number of its own loses its only check; under the number of another clause the loss would not show.
#[test]
fn a_lost_check_is_noticed() {
    let defined =
        |third: &str| clauses_in(&format!("/// - `S-TX-1` One.\n/// - `S-TX-2` Two.\n/// - `{third}` Three.\n"));
    assert_eq!(problems(&defined("S-TX-3"), &["S-TX-1", "S-TX-2", "S-TX-3"]), Vec::<String>::new());
    assert_eq!(problems(&defined("S-TX-3"), &["S-TX-1", "S-TX-2"]), ["S-TX-3 has no check"]);
    assert_eq!(problems(&defined("S-TX-2"), &["S-TX-1", "S-TX-2"]), ["S-TX-2 is the number of two clauses"]);
    assert_eq!(problems(&defined("S-TX-3"), &["S-TX-1", "S-TX-2", "S-TX-3", "S-TX-4"]).len(), 1);
}

#[test]
fn no_two_checks_have_one_name() {
    let mut ids: Vec<String> = store_checks::<MemoryHarness>().iter().map(saga_testkit::Check::id).collect();
    ids.extend(start_in_checks::<MemoryHarness>().iter().map(saga_testkit::Check::id));
    ids.extend(transport_checks::<MemoryHarness>().iter().map(saga_testkit::Check::id));
    let different: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), ids.len());
}
