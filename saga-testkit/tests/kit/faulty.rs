//! The suites bite: each flaw is caught by the checks that cite the clause it breaks, and what has no flaw passes.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use saga_testkit::faulty::{FaultyHarness, StoreFlaw, TransportFlaw};
use saga_testkit::{
    Check, Failed, Need, StoreBench, TransportBench, block_on, start_in_checks, store_checks, transport_checks,
};

/// A check that does not end has failed: a flaw may leave it waiting for what never comes.
const LONG: Duration = Duration::from_secs(30);

type StoreCheck = Check<StoreBench<FaultyHarness>>;
type TransportCheck = Check<TransportBench<FaultyHarness>>;

fn all_store_checks() -> Vec<StoreCheck> {
    store_checks().into_iter().chain(start_in_checks()).collect()
}

async fn run_store(check: &StoreCheck, store: Option<StoreFlaw>) -> Result<(), Failed> {
    let harness = Arc::new(FaultyHarness { store, transport: None });
    let run = async { check.run(StoreBench::fresh(harness).await).await };
    tokio::time::timeout(LONG, run).await.unwrap_or_else(|_| Err(Failed("it did not end".into())))
}

async fn run_transport(check: &TransportCheck, transport: Option<TransportFlaw>) -> Result<(), Failed> {
    let harness = Arc::new(FaultyHarness { store: None, transport });
    let run = async { check.run(TransportBench::fresh(harness).await).await };
    tokio::time::timeout(LONG, run).await.unwrap_or_else(|_| Err(Failed("it did not end".into())))
}

/// The flaws that the given run lets pass.
fn uncaught<F: Copy + Debug>(flaws: &[F], mut is_caught: impl FnMut(F) -> bool) -> Vec<F> {
    flaws.iter().copied().filter(|flaw| !is_caught(*flaw)).collect()
}

/// Says which check catches a flaw, and whether one does.
fn told(flaw: impl Debug, clause: &str, caught_by: Option<String>) -> bool {
    let Some(check) = caught_by else { return false };
    println!("{flaw:?} breaks {clause}, and {check} finds that");
    true
}

#[test]
fn a_store_without_a_flaw_passes() {
    // The check that needs a store for one process only is run on the flaw that pretends to be one.
    for check in all_store_checks().iter().filter(|check| !check.needs.contains(&Need::Alone)) {
        let outcome = block_on(run_store(check, None));
        assert!(outcome.is_ok(), "{}: {outcome:?}", check.id());
    }
}

#[test]
fn a_transport_without_a_flaw_passes() {
    for check in transport_checks() {
        let outcome = block_on(run_transport(&check, None));
        assert!(outcome.is_ok(), "{}: {outcome:?}", check.id());
    }
}

#[test]
fn every_flaw_of_a_store_is_caught() {
    let checks = all_store_checks();
    let missed = uncaught(StoreFlaw::ALL, |flaw| {
        let mut citing = checks.iter().filter(|check| check.clauses.contains(&flaw.clause()));
        let caught = citing.find(|check| block_on(run_store(check, Some(flaw))).is_err());
        told(flaw, flaw.clause(), caught.map(Check::id))
    });
    assert!(missed.is_empty(), "no check that cites the clause catches these: {missed:?}");
}

#[test]
fn every_flaw_of_a_transport_is_caught() {
    let checks = transport_checks();
    let missed = uncaught(TransportFlaw::ALL, |flaw| {
        let mut citing = checks.iter().filter(|check| check.clauses.contains(&flaw.clause()));
        let caught = citing.find(|check| block_on(run_transport(check, Some(flaw))).is_err());
        told(flaw, flaw.clause(), caught.map(Check::id))
    });
    assert!(missed.is_empty(), "no check that cites the clause catches these: {missed:?}");
}

#[test]
fn every_clause_has_a_flaw() {
    let broken: BTreeSet<&str> = StoreFlaw::ALL.iter().map(|flaw| flaw.clause()).collect();
    let cited: BTreeSet<&str> = all_store_checks().iter().flat_map(|check| check.clauses).copied().collect();
    assert_eq!(broken, cited);
    let broken: BTreeSet<&str> = TransportFlaw::ALL.iter().map(|flaw| flaw.clause()).collect();
    let checks: Vec<TransportCheck> = transport_checks();
    let cited: BTreeSet<&str> = checks.iter().flat_map(|check| check.clauses).copied().collect();
    assert_eq!(broken, cited);
}
