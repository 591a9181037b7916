//! Mistakes between services and in batches that are made on purpose: the checker finds each of them in the simulation.

use saga_testkit::checker::Guarantee;
use saga_testkit::sim::{Plant, has_crowd, has_services, run, run_planted};

/// How many schedules are looked through for one in which the mistake has consequences.
const SCHEDULES: u64 = 2_000;

/// The mistake breaks this guarantee in some schedule, which is sound without it.
fn is_found(plant: Plant, guarantee: Guarantee) {
    is_found_in(plant, guarantee, has_services);
}

/// The same, in schedules of this kind.
fn is_found_in(plant: Plant, guarantee: Guarantee, kind: fn(u64) -> bool) {
    let breaks = |seed: &u64| {
        let report = run_planted(*seed, plant);
        report.violations.iter().any(|violation| violation.guarantee == guarantee)
    };
    let of_kind = |seed: u64| (0..=seed).filter(|seed| kind(*seed)).count();
    let Some(seed) = (0..SCHEDULES).filter(|seed| kind(*seed)).find(breaks) else {
        panic!("{plant:?} was not found as {guarantee} in {SCHEDULES} schedules");
    };
    println!("{plant:?} is found as {guarantee} by seed {seed}, in schedule {} of its kind", of_kind(seed));
    let sound = run(seed).violations;
    assert!(sound.is_empty(), "seed {seed} is not sound without {plant:?}: {sound:?}");
}

#[test]
fn a_receiver_that_settles_before_it_has_stored_is_found() {
    is_found(Plant::SettlesBeforeStoring, Guarantee::G4);
}

#[test]
fn a_command_that_is_sent_again_under_another_id_is_found() {
    is_found(Plant::SendsUnderNewIds, Guarantee::G3);
}

#[test]
fn a_reply_to_what_nobody_asked_is_found() {
    is_found(Plant::AnswersNothing, Guarantee::G4);
}

#[test]
fn a_batch_step_that_writes_for_what_it_rejects_is_found() {
    is_found_in(Plant::WritesForRejected, Guarantee::G1, |seed| has_crowd(seed) && !has_services(seed));
}

#[test]
fn an_undo_without_a_tombstone_is_found() {
    is_found(Plant::NoTombstone, Guarantee::G5);
}
