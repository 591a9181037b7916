//! Branches of groups in the simulation: that they meet, and that the checker knows what comes after what.

use saga_testkit::checker::{Guarantee, Ledger, check};
use saga_testkit::sim::{Fault, Hits, has_locks, has_services, run};

/// How many schedules are looked through. They are the same in every run.
const SCHEDULES: u64 = 400;
/// And so many more where one of the things that are looked for has not happened by then.
const SCHEDULES_MAX: u64 = 3_000;

#[test]
fn branches_run_fail_and_are_undone_beside_each_other() {
    // That two fail, or get stuck, beside each other comes up once in 500 and in 1,000 schedules: the long run of the test
    // command fails where it never does.
    let wanted = [Fault::BranchesAtOnce, Fault::BranchesUndoneAtOnce, Fault::BranchesJoined];
    let mut total = vec![0; Hits::new().counts().len()];
    for seed in (0..SCHEDULES_MAX).filter(|seed| !has_services(*seed)) {
        if seed >= SCHEDULES && wanted.iter().all(|fault| total[*fault as usize] > 0) {
            return;
        }
        let report = run(seed);
        assert!(report.violations.is_empty(), "seed {seed}: {:?}", report.violations);
        for (total, hits) in total.iter_mut().zip(report.hits) {
            *total += hits;
        }
    }
    for fault in wanted {
        assert!(total[fault as usize] > 0, "{} was never hit in {SCHEDULES_MAX} schedules", fault.name());
    }
}

/// An engine that does not know of an edge of a definition is as one that breaks it: the checker is told of an edge that
/// the engine did not have, and finds that out as G5.
fn is_found(change: impl Fn(&mut Ledger) -> bool, says: &str) {
    for seed in (0..SCHEDULES_MAX).filter(|seed| !has_locks(*seed)) {
        let mut ledger = run(seed).ledger;
        if !change(&mut ledger) {
            continue;
        }
        let found = check(&ledger);
        if found.iter().any(|violation| violation.guarantee == Guarantee::G5 && violation.about.contains(says)) {
            return;
        }
    }
    panic!("nothing was found in {SCHEDULES_MAX} schedules");
}

/// Changes what the checker knows of one definition.
fn replan(ledger: &mut Ledger, definition: &str, step: usize, after: &[u8]) -> bool {
    let mut has_changed = false;
    for variant in ledger.sagas.iter_mut().flat_map(|saga| &mut saga.variants) {
        if variant.definition == definition {
            variant.steps[step].after = Some(after.to_vec());
            has_changed = true;
        }
    }
    has_changed
}

/// `charge-1` and `reserve-2` of `fork` are branches. Were the second to join behind the first, it begins too early.
#[test]
fn a_join_before_its_branches_are_done_is_found() {
    is_found(|ledger| replan(ledger, "fork", 2, &[1]), "took effect before");
}

/// The two are undone side by side, which is wrong for steps of which one comes after the other.
#[test]
fn an_undo_beside_that_of_a_later_step_is_found() {
    is_found(|ledger| replan(ledger, "fork-last", 2, &[1]), "began before");
}
