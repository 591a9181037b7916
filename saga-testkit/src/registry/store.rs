//! The checks of a store.

use super::checks::checks;
use super::messages::messages;
use super::transactions::transactions;
use crate::check::Check;
use crate::fixture::Bench;
use crate::harness::StoreHarness;
use crate::store::{
    concurrency, histories, limits,
    locks::{hand_overs, locks_in_transactions, semantic_locks},
    messages::letters,
    misses, records,
    sagas::{acts, definitions, deleted, listing, purge, purge_kept, sagas, sampling, unclosed},
    transactions::{unknown, waiting},
    work::{begun, claims, leases, recovery, reports, shares, whole_shares},
};

/// Every check of a store.
pub fn store_checks<H: StoreHarness>() -> Vec<Check<Bench<H>>> {
    let mut checks = duties::<H>();
    checks.extend(work::<H>());
    checks.extend(versions::<H>());
    checks.extend(messages::<H>());
    checks.extend(decisions::<H>());
    checks.extend(transactions::<H>());
    checks.extend(purging::<H>());
    checks.extend(locking::<H>());
    checks
}

fn duties<H: StoreHarness>() -> Vec<Check<Bench<H>>> {
    checks![
        ["S-ID-1"] => sagas::ids_are_above_zero_and_never_given_twice::<H>,
        ["S-ID-1"] => sagas::ids_are_not_given_again_by_the_next_process::<H>,
        ["S-ID-1"] => concurrency::ids_differ_among_tasks::<H>,
        ["S-SAGA-1"] => sagas::start_keeps_all_that_it_was_given::<H>,
        ["S-SAGA-1"] => sagas::a_started_saga_outlives_its_process::<H>,
        ["S-SAGA-1"] => sagas::a_leased_first_command_belongs_to_its_owner::<H>,
        ["S-SAGA-1"] => sagas::every_command_of_a_start_is_kept::<H>,
        ["S-SAGA-1"] => limits::large_and_binary_values_are_kept::<H>,
        ["S-SAGA-1"] => unknown::a_repeated_start_finds_out::<H> needs UnknownCommit,
        ["S-SAGA-2"] => sagas::a_second_start_gets_the_stored_saga::<H>,
        ["S-SAGA-2"] => sagas::a_second_start_changes_nothing::<H>,
        ["S-SAGA-2"] => sagas::the_same_key_twice_in_one_call::<H>,
        ["S-SAGA-2"] => sagas::a_key_stays_taken_when_its_saga_has_ended::<H>,
        ["S-SAGA-2"] => concurrency::one_of_many_starts_is_new::<H>,
        ["S-SAGA-2"] => concurrency::overlapping_starts_do_not_lock_each_other_out::<H>,
        ["S-SAGA-2"] => limits::keys_differ_by_case::<H>,
        ["S-SAGA-3"] => sagas::answers_to_a_start_come_in_order::<H>,
        ["S-SAGA-3"] => sagas::an_empty_call_does_nothing::<H>,
        ["S-SAGA-3"] => limits::one_call_carries_many_rows::<H>,
        ["S-SAGA-4"] => sagas::one_key_of_two_tenants_is_two_sagas::<H>,
        ["S-SAGA-4"] => sagas::no_read_crosses_tenants::<H>,
        ["S-SAGA-11"] => sagas::progress_is_that_of_the_saga::<H>,
        ["S-SAGA-4"] => sagas::sagas_by_id_finds_those_that_exist::<H>,
        ["S-SAGA-4"] => limits::the_longest_names_fit::<H>,
        ["S-SAGA-5"] => listing::pages_by_id_meet_each_saga_once::<H>,
        ["S-SAGA-5"] => listing::a_list_obeys_every_field_of_its_filter::<H>,
        ["S-SAGA-5", "S-SAGA-4"] => listing::a_list_is_of_one_tenant::<H>,
        ["S-SAGA-12"] => listing::what_keeps_failing_is_listed::<H>,
        ["S-SAGA-6"] => listing::every_saga_is_counted_in_one_status::<H>,
        ["S-SAGA-7"] => listing::a_saga_that_waits_for_nothing_is_found::<H>,
        ["S-SAGA-7"] => listing::a_saga_that_waits_for_something_is_not_found::<H>,
        ["S-SAGA-10"]
            => waiting::a_key_that_is_being_taken_is_waited_for_shortly::<H> needs Shared and StartsInTransactions,
        ["S-SAGA-9"] => acts::what_people_did_is_listed_the_latest_first::<H>,
        ["S-SAGA-8"] => limits::keys_of_hosted_steps_are_kept::<H>,
    ]
}

fn work<H: StoreHarness>() -> Vec<Check<Bench<H>>> {
    checks![
        ["S-WORK-1"] => claims::a_claim_gives_the_next_epoch_and_the_owner::<H>,
        ["S-WORK-1", "S-SAGA-4"] => claims::a_claim_brings_all_that_is_needed::<H>,
        ["S-WORK-1", "S-WORK-9"] => claims::work_that_is_not_due_is_left::<H>,
        ["S-WORK-1", "S-WORK-9"] => claims::work_falls_due::<H>,
        ["S-WORK-1", "S-WORK-4"] => claims::a_deadline_is_claimed_like_work::<H>,
        ["S-WORK-9"] => claims::the_clock_is_the_one_that_decides::<H>,
        ["S-WORK-1"] => claims::nothing_waits_in_an_empty_store::<H>,
        ["S-WORK-1"] => claims::work_of_unknown_definitions_is_left::<H>,
        ["S-WORK-1"] => claims::a_claim_obeys_its_limit::<H>,
        ["S-WORK-1"] => claims::the_oldest_due_comes_first::<H>,
        ["S-WORK-14"] => shares::of_each_share_its_limit_is_taken::<H>,
        ["S-WORK-14"] => shares::a_share_is_of_steps_and_kinds::<H>,
        ["S-WORK-14"] => shares::a_share_without_room_holds_up_no_other::<H>,
        ["S-WORK-14"] => shares::work_of_the_dead_is_shared_out::<H>,
        ["S-WORK-14"] => shares::what_falls_due_later_is_announced::<H>,
        ["S-WORK-14", "S-SAGA-4"] => whole_shares::a_share_brings_all_that_is_needed::<H>,
        ["S-WORK-14", "S-WORK-1"] => whole_shares::the_oldest_due_of_a_share_comes_first::<H>,
        ["S-WORK-14", "S-WORK-4"] => whole_shares::a_recorded_step_of_a_share_is_deleted::<H>,
        ["S-WORK-14", "S-WORK-3"] => whole_shares::an_ended_lease_of_a_share_is_free_and_recovered::<H>,
        ["S-WORK-14", "S-WORK-3"] => whole_shares::a_share_of_a_member_that_left_is_free_and_suspect::<H>,
        ["S-WORK-14", "S-WORK-3"] => whole_shares::suspicion_stays_in_a_share::<H>,
        ["S-WORK-14", "S-WORK-11"] => whole_shares::a_share_that_was_only_claimed_has_not_begun::<H>,
        ["S-WORK-14", "S-WORK-11"] => whole_shares::a_beginning_is_remembered_in_a_share::<H>,
        ["S-WORK-14", "S-WORK-13"] => whole_shares::a_claim_of_shares_can_leave_what_others_left::<H>,
        ["S-WORK-14", "S-WORK-13"] => whole_shares::a_dead_member_takes_no_share_over::<H>,
        ["S-WORK-2"] => claims::two_claims_share_nothing::<H>,
        ["S-WORK-2"] => claims::a_lease_outlives_the_handle_it_was_taken_with::<H> needs Shared,
        ["S-WORK-2"] => concurrency::many_claims_share_nothing::<H>,
        ["S-WORK-2"] => concurrency::two_processes_share_no_work::<H> needs Shared,
        ["S-WORK-3"] => recovery::an_ended_lease_is_free_and_recovered::<H>,
        ["S-WORK-3", "S-MEM-2"] => recovery::the_work_of_a_member_that_left_is_free_and_suspect::<H>,
        ["S-WORK-3"] => recovery::suspicion_stays_until_the_row_is_finished::<H>,
        ["S-WORK-3"] => recovery::work_survives_the_death_of_every_process::<H>,
        ["S-WORK-11", "S-WORK-3"] => begun::a_row_that_was_only_claimed_has_not_begun::<H>,
        ["S-WORK-11"] => begun::a_row_that_was_inserted_leased_counts_as_begun::<H>,
        ["S-WORK-11", "S-WORK-12"] => begun::a_beginning_is_remembered::<H>,
        ["S-WORK-11", "S-WORK-6"] => begun::giving_a_waiting_row_back_makes_it_no_other::<H>,
        ["S-WORK-11", "S-WORK-12"] => begun::an_attempt_that_ended_is_no_beginning::<H>,
        ["S-WORK-12"] => begun::beginning_answers_for_each_row_in_order::<H>,
        ["S-WORK-12"] => begun::beginning_renews_the_lease::<H>,
        ["S-WORK-13"] => begun::a_claim_can_leave_what_others_left::<H>,
        ["S-WORK-13"] => begun::a_dead_member_takes_nothing_over::<H>,
        ["S-WORK-15"] => begun::what_a_member_has_not_begun_is_released_together::<H>,
        ["S-WORK-4"] => claims::work_of_a_recorded_step_is_deleted::<H>,
        ["S-WORK-4"] => claims::a_record_of_one_step_leaves_the_others::<H>,
        ["S-WORK-5"] => leases::a_renewed_lease_lasts::<H>,
        ["S-WORK-5"] => leases::renewing_answers_for_each_row_in_order::<H>,
        ["S-WORK-5"] => leases::a_lost_row_cannot_be_renewed::<H>,
        ["S-WORK-6", "S-WORK-3"] => leases::a_row_that_was_given_back_is_free::<H>,
        ["S-WORK-6"] => leases::giving_back_raises_the_epoch::<H>,
        ["S-WORK-6"] => leases::giving_back_answers_for_each_row_in_order::<H>,
        ["S-WORK-6"] => leases::a_first_epoch_can_be_given_back::<H>,
        ["S-WORK-6"] => unknown::giving_back_learns_whether_a_step_committed::<H> needs UnknownCommit,
        ["S-WORK-7"] => leases::an_attempt_is_written_down_before_it_runs::<H>,
        ["S-WORK-8"] => leases::a_late_success_is_kept_on_the_row::<H>,
        ["S-WORK-8"] => leases::a_late_success_bars_a_decision_that_did_not_see_it::<H>,
        ["S-WORK-8"] => leases::without_a_late_success_the_condition_holds::<H>,
        ["S-WORK-9", "S-WORK-3"] => leases::a_postponed_row_waits_and_remembers::<H>,
        ["S-WORK-9"] => leases::retrying_is_counted_from_the_first_error::<H>,
        ["S-WORK-9"] => leases::an_attempt_without_an_error_is_no_retry::<H>,
        ["S-WORK-9"] => claims::the_backlog_counts_what_waits::<H>,
        ["S-WORK-9"] => claims::work_that_is_not_due_is_not_overdue::<H>,
        ["S-WORK-10"] => reports::a_report_stays_on_the_row::<H>,
        ["S-WORK-10", "S-WORK-9"] => reports::a_report_has_the_time_of_its_statement::<H>,
        ["S-WORK-10"] => reports::a_lost_row_takes_no_report::<H>,
        ["S-WORK-10"] => reports::an_earlier_report_does_not_replace_a_later_one::<H>,
        ["S-WORK-10"] => reports::a_report_with_a_lease_renews_it::<H>,
    ]
}

fn versions<H: StoreHarness>() -> Vec<Check<Bench<H>>> {
    checks![
        ["S-DEF-1"] => definitions::a_definition_is_kept_as_it_was_first::<H>,
        ["S-DEF-1", "S-DEF-2"] => definitions::of_many_at_once_one_is_kept::<H>,
        ["S-DEF-2"] => definitions::a_definition_stays_once_it_was_used::<H>,
        ["S-DEF-2"] => definitions::sagas_tell_what_was_not_kept::<H>,
        ["S-DEF-3"] => definitions::definitions_are_listed_by_name_and_version::<H>,
        ["S-DEF-4"] => definitions::a_moved_saga_has_its_new_version::<H>,
        ["S-DEF-4"] => definitions::a_saga_that_moved_on_is_not_moved::<H>,
        ["S-DEF-5"] => definitions::its_work_belongs_to_the_new_version::<H>,
        ["S-DEF-5"] => definitions::held_work_stays::<H>,
        ["S-DEF-5", "S-WORK-3"] => definitions::work_of_a_vanished_owner_moves_and_is_suspect::<H>,
        ["S-DEF-6"] => definitions::records_move_with_their_saga::<H>,
        ["S-DEF-6"] => definitions::records_in_the_way_leave_nothing::<H>,
        ["S-DEF-7"] => definitions::withdrawn_work_goes_with_the_move::<H>,
        ["S-DEF-8"] => sampling::a_sample_has_what_goes_on::<H>,
        ["S-DEF-8"] => sampling::of_many_sagas_the_oldest_and_the_newest_are_read::<H>,
    ]
}

fn decisions<H: StoreHarness>() -> Vec<Check<Bench<H>>> {
    checks![
        ["S-REC-1"] => records::everything_of_a_change_is_written::<H>,
        ["S-REC-1", "S-REC-2"] => records::a_moved_saga_leaves_nothing::<H>,
        ["S-REC-1", "S-REC-4"] => records::a_lost_row_leaves_nothing::<H>,
        ["S-REC-1", "S-REC-5"] => records::a_record_that_exists_leaves_nothing::<H>,
        ["S-REC-1"] => records::a_miss_hinders_no_other_change::<H>,
        ["S-REC-1", "S-REC-2"] => deleted::a_change_of_a_deleted_saga_misses_alone::<H>,
        ["S-REC-1"] => records::the_end_is_written_down_and_cleared::<H>,
        ["S-REC-1"] => records::every_outcome_is_kept::<H>,
        ["S-REC-1"] => records::history_comes_oldest_first::<H>,
        ["S-REC-1"] => limits::empty_is_not_absent::<H>,
        ["S-REC-1", "S-WORK-1", "S-WORK-3", "S-WORK-5", "S-WORK-6", "S-TX-1"]
            => histories::random_histories_answer_as_the_model::<H>,
        ["S-REC-2"] => records::an_advance_counts_one::<H>,
        ["S-REC-2"] => records::changes_without_an_advance_move_no_saga::<H>,
        ["S-REC-3"] => concurrency::one_of_many_writers_wins::<H>,
        ["S-REC-4"] => recovery::who_lost_its_row_decides_nothing::<H>,
        ["S-REC-4"] => recovery::an_ended_lease_without_a_new_owner_still_decides::<H>,
        ["S-REC-4"] => records::the_lease_does_not_matter_to_a_decision::<H>,
        ["S-REC-4"] => records::postponing_needs_the_epoch::<H>,
        ["S-REC-4"] => records::finishing_twice_misses::<H>,
        ["S-REC-5"] => records::a_record_is_inserted_once::<H>,
        ["S-REC-5"] => records::a_revision_needs_what_it_expects::<H>,
        ["S-REC-5"] => concurrency::one_of_many_records_is_inserted::<H>,
        ["S-REC-6"] => records::two_changes_of_one_saga_are_refused::<H>,
        ["S-REC-7"] => misses::a_lost_row_comes_before_all_else::<H>,
        ["S-REC-7"] => misses::a_late_success_comes_before_record_and_saga::<H>,
        ["S-REC-7"] => misses::a_record_comes_before_the_saga::<H>,
        ["S-REC-8"] => records::a_message_appears_with_its_commit::<H>,
        ["S-REC-10"] => records::changes_start_a_saga::<H>,
        ["S-REC-11"] => records::a_withdrawn_row_is_gone_whatever_its_epoch::<H>,
        ["S-REC-13"] => records::a_command_that_was_tried_remembers_it::<H>,
        ["S-REC-14"] => records::records_of_steps_leave_out_those_of_items::<H>,
        ["S-REC-15"] => waiting::a_held_row_is_waited_for_shortly::<H> needs Shared,
        ["S-REC-12"] => letters::a_letter_comes_with_its_commit::<H>,
        ["S-REC-9"] => unknown::a_repeated_record_finds_out::<H> needs UnknownCommit,
    ]
}

fn locking<H: StoreHarness>() -> Vec<Check<Bench<H>>> {
    checks![
        ["S-LOCK-1"] => semantic_locks::one_saga_has_an_entity_at_a_time::<H>,
        ["S-LOCK-1"] => semantic_locks::all_entities_are_granted_or_none::<H>,
        ["S-LOCK-1"] => hand_overs::a_request_gets_nothing_before_all_its_entities_are_free::<H>,
        ["S-LOCK-1", "S-LOCK-2"] => semantic_locks::sagas_of_one_owner_share::<H>,
        ["S-LOCK-1", "S-LOCK-5"] => semantic_locks::many_at_once_get_their_turns::<H>,
        ["S-LOCK-2"] => semantic_locks::tokens_grow::<H>,
        ["S-LOCK-3"] => semantic_locks::waits_are_granted_in_their_order::<H>,
        ["S-LOCK-4"] => semantic_locks::a_wait_frees_its_row::<H>,
        ["S-LOCK-5"] => semantic_locks::the_commit_that_ends_a_lock_grants_the_next::<H>,
        ["S-LOCK-5"] => semantic_locks::a_step_transaction_ends_locks::<H>,
        ["S-LOCK-5"] => semantic_locks::changes_that_miss_end_no_lock::<H>,
        ["S-LOCK-5"] => semantic_locks::of_a_commit_in_doubt_the_hand_over_is_a_part::<H> needs UnknownCommit,
        ["S-LOCK-5"] => hand_overs::each_entity_of_a_lock_goes_to_its_own_next_saga::<H>,
        ["S-LOCK-6"] => semantic_locks::of_a_ring_the_youngest_gives_up::<H>,
        ["S-LOCK-6"] => semantic_locks::the_last_of_a_ring_of_three_gives_up_itself::<H>,
        ["S-LOCK-7"] => semantic_locks::a_wait_ends_with_its_time::<H>,
        ["S-LOCK-7"] => hand_overs::a_request_that_gave_up_holds_up_no_other::<H>,
        ["S-LOCK-8"] => semantic_locks::a_lost_row_asks_for_nothing::<H>,
        ["S-LOCK-9"] => semantic_locks::tenants_have_entities_of_their_own::<H>,
        ["S-LOCK-2", "S-LOCK-10"] => locks_in_transactions::a_lock_lasts_as_long_as_the_transaction::<H>,
        ["S-LOCK-10"] => locks_in_transactions::a_claim_without_its_lock_is_not_granted::<H>,
        ["S-LOCK-10"] => locks_in_transactions::a_lock_that_was_granted_before_is_kept::<H>,
        ["S-LOCK-10"] => locks_in_transactions::claims_of_a_transaction_share_no_semantic_lock::<H>,
        ["S-LOCK-2", "S-LOCK-10"] => locks_in_transactions::steps_of_a_transaction_share_an_entity_and_its_token::<H>,
        ["S-LOCK-2", "S-LOCK-12"] => locks_in_transactions::a_lock_that_is_kept_lasts_until_it_ends::<H>,
        ["S-LOCK-12"] => locks_in_transactions::a_saga_that_starts_keeps_its_lock::<H>,
        ["S-LOCK-12"] => locks_in_transactions::a_transaction_that_fails_keeps_no_lock::<H>,
        ["S-LOCK-12"] => locks_in_transactions::a_lock_that_is_kept_is_granted_to_no_other_in_between::<H> needs Shared,
        ["S-LOCK-11"] => semantic_locks::locks_of_steps_end_with_their_commands::<H>,
        ["S-LOCK-10"] => locks_in_transactions::an_entity_of_an_open_transaction_is_granted_to_no_other::<H> needs Shared,
    ]
}

fn purging<H: StoreHarness>() -> Vec<Check<Bench<H>>> {
    checks![
        ["S-PURGE-1"] => purge::the_commit_that_ends_a_saga_dates_it::<H>,
        ["S-PURGE-1"] => purge::a_long_saga_is_kept_as_long_as_a_short_one::<H> needs Hours,
        ["S-PURGE-2"] => purge::what_is_over_longest_comes_first::<H>,
        ["S-PURGE-3"] => purge::a_tombstone_keeps_who_it_was::<H>,
        ["S-PURGE-3"] => purge::nothing_is_left_of_a_deleted_saga::<H>,
        ["S-PURGE-3"] => purge_kept::a_saga_is_purged_once::<H> needs UnknownCommit,
        ["S-PURGE-3"] => deleted::a_deleted_saga_gets_no_history::<H>,
        ["S-PURGE-4"] => purge::what_changed_since_it_was_listed_is_left::<H>,
        ["S-PURGE-5"] => purge_kept::an_open_letter_keeps_a_saga::<H>,
        ["S-PURGE-5"] => purge_kept::a_message_that_was_not_sent_keeps_a_saga::<H>,
        ["S-PURGE-5"] => purge_kept::what_has_not_ended_keeps_a_saga::<H>,
        ["S-PURGE-5"] => purge_kept::a_saga_that_is_kept_is_due_again_after_the_retry_interval::<H>,
        ["S-PURGE-3", "S-PURGE-5"] => purge_kept::a_tombstone_may_be_kept_for_ever::<H>,
        ["S-PURGE-6"] => purge::one_member_does_the_maintenance::<H>,
        ["S-PURGE-7"] => purge::a_deleted_key_is_new::<H>,
        ["S-PURGE-8"] => purge_kept::hosted_steps_are_dated_by_the_saga_that_asked::<H>,
        ["S-PURGE-9"] => purge_kept::another_expiry_counts_from_the_end::<H>,
        ["S-PURGE-9"] => purge_kept::an_exempt_saga_that_moves_stays_exempt::<H>,
        ["S-PURGE-9"] => purge_kept::what_ended_before_gets_another_expiry::<H>,
        ["S-PURGE-10"] => purge_kept::decided_letters_are_forgotten::<H>,
        ["S-PURGE-11"] => unclosed::unclosed_steps_are_listed_part_by_part::<H>,
        ["S-PURGE-11"] => unclosed::a_walk_begins_again_after_a_pause::<H> needs Hours,
        ["S-PURGE-12"] => unclosed::known_sagas_are_those_of_the_tenant::<H>,
    ]
}
