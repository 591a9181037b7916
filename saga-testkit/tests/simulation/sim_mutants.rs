//! Mistakes between services, in batches and about groups that are made on purpose: the checker finds each of them in the simulation.

use saga_testkit::checker::Guarantee;
use saga_testkit::sim::{
    Mutant, has_crowd, has_load, has_locks, has_retention, has_services, run, run_mutant, shares_tenants,
};

/// How many schedules are looked through for one in which the mistake has consequences.
const SCHEDULES: u64 = 2_000;
/// The same where only those with more work than lines are run: one in a hundred.
const LOAD_SCHEDULES: u64 = 30_000;

/// The same where only those are run in which hosts purge what they did: one in seventy.
const RETENTION_SCHEDULES: u64 = 10_000;

/// The mistake breaks this guarantee in some schedule, which is sound without it.
fn is_found(mutant: Mutant, guarantee: Guarantee) {
    is_found_in(mutant, guarantee, "", has_services);
}

/// The same for a mistake about groups, and what the checker says of it.
fn is_found_in_groups(mutant: Mutant, says: &str) {
    is_found_in(mutant, Guarantee::G5, says, |seed| !has_services(seed));
}

/// The same for a mistake about claims, in schedules with more work than lines.
fn is_found_in_load(mutant: Mutant, guarantee: Guarantee, says: &str) {
    is_found_among(LOAD_SCHEDULES, mutant, guarantee, says, has_load);
}

/// The same, in schedules of this kind.
fn is_found_in(mutant: Mutant, guarantee: Guarantee, says: &str, kind: fn(u64) -> bool) {
    is_found_among(SCHEDULES, mutant, guarantee, says, kind);
}

fn is_found_among(schedules: u64, mutant: Mutant, guarantee: Guarantee, says: &str, kind: fn(u64) -> bool) {
    let breaks = |seed: &u64| {
        let report = run_mutant(*seed, mutant);
        let mut of_it = report.violations.iter().filter(|violation| violation.guarantee == guarantee);
        of_it.any(|violation| violation.about.contains(says))
    };
    let of_kind = |seed: u64| (0..=seed).filter(|seed| kind(*seed)).count();
    let Some(seed) = (0..schedules).filter(|seed| kind(*seed)).find(breaks) else {
        panic!("{mutant:?} was not found as {guarantee} in {schedules} schedules");
    };
    println!("{mutant:?} is found as {guarantee} by seed {seed}, in schedule {} of its kind", of_kind(seed));
    let sound = run(seed).violations;
    assert!(sound.is_empty(), "seed {seed} is not sound without {mutant:?}: {sound:?}");
}

/// The same for a mistake about retention, in schedules in which ended sagas are purged.
fn is_found_in_retention(mutant: Mutant, guarantee: Guarantee, says: &str, has_hosts: bool) {
    let kind = if has_hosts {
        |seed: u64| has_retention(seed) && has_services(seed)
    } else {
        |seed: u64| has_retention(seed) && !has_services(seed)
    };
    is_found_among(RETENTION_SCHEDULES, mutant, guarantee, says, kind);
}

/// Found in calls under locks of steps, and in what sagas have with semantic locks.
#[test]
fn a_lock_that_is_granted_to_all_is_found() {
    is_found_in(Mutant::GrantsEveryLock, Guarantee::G5, "was made for the account", has_locks);
    is_found_in(Mutant::GrantsEveryLock, Guarantee::G5, "it used the account", has_locks);
}

#[test]
fn a_semantic_lock_that_ends_before_the_last_undo_is_found() {
    is_found_in(Mutant::EndsLocksEarly, Guarantee::G5, "it used the account", has_locks);
}

#[test]
fn a_semantic_lock_that_ends_with_the_start_is_found() {
    is_found_in(Mutant::ForgetsKeptLocks, Guarantee::G5, "it used the account", has_locks);
}

#[test]
fn a_receiver_that_settles_before_it_has_stored_is_found() {
    is_found(Mutant::SettlesBeforeStoring, Guarantee::G4);
}

#[test]
fn a_command_that_is_sent_again_under_another_id_is_found() {
    is_found(Mutant::SendsUnderNewIds, Guarantee::G3);
}

#[test]
fn a_reply_to_what_nobody_asked_is_found() {
    is_found(Mutant::MisaddressesReplies, Guarantee::G4);
}

#[test]
fn an_undo_that_brings_another_input_than_its_command_is_found() {
    is_found_in(Mutant::UndoesWithOtherInputs, Guarantee::G5, "is done or undone with another", has_services);
}

#[test]
fn a_batch_step_that_writes_for_what_it_rejects_is_found() {
    is_found_in(Mutant::WritesForRejected, Guarantee::G1, "", |seed| has_crowd(seed) && !has_services(seed));
}

#[test]
fn tenants_that_share_a_transaction_unasked_are_found() {
    is_found_in(Mutant::SharesTenantsUnasked, Guarantee::G12, "shares a transaction", |seed| !shares_tenants(seed));
}

#[test]
fn a_group_that_is_joined_when_its_first_branch_is_done_is_found() {
    is_found_in_groups(Mutant::JoinsEarly, "took effect before");
}

#[test]
fn a_branch_that_is_not_undone_is_found() {
    is_found_in_groups(Mutant::ForgetsBranches, "was never undone");
}

#[test]
fn a_branch_that_does_not_wait_for_what_stands_in_front_of_its_group_is_found() {
    is_found_in_groups(Mutant::DetachesBranches, "took effect before");
}

#[test]
fn an_item_that_is_not_undone_is_found() {
    is_found_in_groups(Mutant::ForgetsItems, "was never undone");
}

#[test]
fn an_item_that_is_not_undone_elsewhere_is_found() {
    is_found_in(Mutant::ForgetsItems, Guarantee::G5, "was never undone", has_services);
}

#[test]
fn an_arm_that_runs_though_another_was_taken_is_found() {
    is_found_in_groups(Mutant::RunsEveryArm, "is taken was never recorded");
}

#[test]
fn an_arm_that_is_not_undone_is_found() {
    is_found_in_groups(Mutant::ForgetsArms, "was never undone");
}

#[test]
fn a_report_that_counts_whoever_has_the_claim_is_found() {
    is_found_in_load(Mutant::ReportsUnfenced, Guarantee::G7, "was neither told nor reported");
}

#[test]
fn a_last_report_that_is_not_written_down_is_found() {
    is_found_in(Mutant::ForgetsLastReport, Guarantee::G3, "had reported", |_| true);
}

#[test]
fn a_sub_saga_that_is_not_undone_is_found() {
    is_found_in_groups(Mutant::ForgetsSubSagas, "was never undone");
}

#[test]
fn an_undo_without_a_tombstone_is_found() {
    is_found(Mutant::NoTombstone, Guarantee::G5);
}

/// Found in the step that is done once more, and in the output that those behind it are given.
#[test]
fn a_saga_that_takes_nothing_over_is_found() {
    is_found_in(Mutant::RestartsFromScratch, Guarantee::G2, "was taken over, and done again", |seed| {
        !has_services(seed)
    });
}

#[test]
fn waiting_that_counts_as_begun_is_found() {
    is_found_in_load(Mutant::MarksWaitingAsBegun, Guarantee::G8, "called once and declined");
}

/// Each half of it alone does no harm: who claims leaves alone for a while what others left, and a process renews by their
/// epochs what lies in its queues. `S-MEM-5` and `S-WORK-13` find each.
#[test]
fn a_member_that_comes_back_without_its_rows_is_found() {
    is_found_in_load(
        Mutant::ReleasesRowsOnRejoin,
        Guarantee::G8,
        "was called again by the process that had the answer",
    );
}

#[test]
fn recovery_one_by_one_is_found() {
    is_found_in_load(Mutant::RecoversOneByOne, Guarantee::G8, "its calls took");
}

#[test]
fn a_call_that_begins_under_a_lost_claim_is_found() {
    is_found_in_load(Mutant::BeginsBlindly, Guarantee::G7, "behind one under the epoch");
}

#[test]
fn a_host_that_purges_what_it_was_not_told_of_is_found() {
    is_found_in_retention(Mutant::HostsPurgeUntold, Guarantee::G13, "when the record of", true);
}

#[test]
fn a_host_that_acts_on_messages_of_any_age_is_found() {
    is_found_in_retention(Mutant::ActsOnOldMessages, Guarantee::G13, "when the record of", true);
}

#[test]
fn an_archive_behind_the_purge_is_found() {
    is_found_in_retention(Mutant::ArchivesLate, Guarantee::G13, "was not archived so", false);
}

#[test]
fn a_host_that_is_told_at_the_end_and_keeps_nothing_is_found() {
    is_found_in_retention(Mutant::ClosesAtTheEnd, Guarantee::G13, "when the record of", true);
}

#[test]
fn a_host_that_never_asks_is_found() {
    is_found_in_retention(Mutant::NeverAsksForClosed, Guarantee::G13, "hosted steps are kept", true);
}

#[test]
fn a_key_that_is_used_before_its_hosts_forgot_it_is_found() {
    is_found_in_retention(Mutant::ReusesKeysEarly, Guarantee::G13, "was still kept by a host", true);
}
