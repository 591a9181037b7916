//! The checks of step transactions, and of transactions of the application.

use super::checks::checks;
use crate::check::Check;
use crate::fixture::Bench;
use crate::harness::{StartInHarness, StoreHarness};
use crate::store::{
    concurrency, limits,
    sagas::purge_kept,
    transactions::{batch_steps, keys, publish_in, running_on, start_in, starting, tenants, together, transaction},
};

/// The checks of starting sagas inside the application's own transaction, and of requests that take effect once.
pub fn start_in_checks<H: StartInHarness>() -> Vec<Check<Bench<H>>> {
    let mut checks = transactions_of_the_application::<H>();
    checks.extend(requests::<H>());
    checks
}

fn requests<H: StartInHarness>() -> Vec<Check<Bench<H>>> {
    checks![
        ["S-KEY-1"] => keys::a_kept_response_comes_with_its_writes::<H>,
        ["S-KEY-1", "S-KEY-13"] => keys::of_a_commit_in_doubt_both_are_there_or_none::<H> needs UnknownCommit,
        ["S-KEY-2"] => keys::another_request_under_the_key_has_no_effect::<H>,
        ["S-KEY-3"] => keys::a_key_in_use_is_not_waited_for::<H> needs Shared,
        ["S-KEY-4"] => keys::a_kept_refusal_has_no_writes::<H>,
        ["S-KEY-5"] => keys::what_is_not_kept_frees_its_key::<H>,
        ["S-KEY-6"] => keys::a_key_is_of_one_principal_of_one_tenant::<H>,
        ["S-KEY-7"] => keys::a_leased_key_is_in_flight_until_its_lease_ends::<H>,
        ["S-KEY-8"] => keys::a_lease_is_completed_under_its_epoch::<H>,
        ["S-KEY-9"] => keys::a_key_is_new_after_its_time::<H>,
        ["S-KEY-10"] => keys::only_keys_whose_time_is_over_are_deleted::<H>,
        ["S-KEY-11"] => keys::a_body_that_ended_the_transaction_keeps_no_response::<H> needs EndedTransaction,
        ["S-KEY-12"] => keys::a_body_without_a_key_has_its_transaction::<H>,
    ]
}

fn transactions_of_the_application<H: StartInHarness>() -> Vec<Check<Bench<H>>> {
    checks![
        ["S-IN-1"] => start_in::a_committed_start_is_there::<H>,
        ["S-IN-1"] => start_in::a_start_that_was_rolled_back_is_not_there::<H>,
        ["S-IN-6"] => start_in::the_ids_of_a_start_follow_each_other::<H>,
        ["S-IN-2"] => start_in::a_taken_key_does_not_end_the_transaction::<H>,
        ["S-IN-2", "S-SAGA-2"] => start_in::one_key_twice_in_one_transaction::<H>,
        ["S-IN-3"] => start_in::a_bare_connection_is_refused::<H>,
        ["S-IN-4", "S-IN-3"] => publish_in::an_event_is_there_if_its_transaction_commits::<H>,
        ["S-IN-4"] => publish_in::an_event_is_read_as_it_was_published::<H>,
        ["S-IN-5"] => publish_in::positions_count_what_was_committed::<H>,
        ["S-IN-5"] => publish_in::the_positions_of_a_key_are_the_order_of_the_commits::<H>,
        ["S-PURGE-10"] => purge_kept::unused_ordering_keys_are_forgotten::<H> needs Hours,
    ]
}

pub(super) fn transactions<H: StoreHarness>() -> Vec<Check<Bench<H>>> {
    checks![
        ["S-TX-1"] => transaction::an_old_epoch_is_not_granted::<H>,
        ["S-TX-1"] => transaction::a_row_that_is_gone_is_not_granted::<H>,
        ["S-TX-1"] => transaction::a_step_with_a_record_is_not_granted::<H>,
        ["S-TX-1"] => transaction::doing_is_not_granted_while_the_saga_compensates::<H>,
        ["S-TX-1"] => transaction::doing_is_not_granted_while_the_saga_is_stuck::<H>,
        ["S-TX-1"] => transaction::nothing_is_granted_while_the_saga_is_paused::<H>,
        ["S-TX-1"] => transaction::undoing_is_not_granted_while_the_saga_runs::<H>,
        ["S-TX-1"] => transaction::undoing_is_granted_while_the_saga_compensates::<H>,
        ["S-TX-1"] => concurrency::a_step_takes_effect_once::<H>,
        ["S-TX-2"] => transaction::granted_rows_have_one_owner::<H>,
        ["S-TX-2"] => transaction::a_short_lease_does_not_end_a_step::<H>,
        ["S-TX-3"] => transaction::a_handler_that_errs_is_undone_alone::<H>,
        ["S-TX-3"] => transaction::an_undone_write_shows_what_was_there::<H>,
        ["S-TX-9"] => running_on::a_claim_that_continues_runs_again::<H>,
        ["S-TX-9", "S-TX-4"] => running_on::one_claim_alone_goes_on::<H>,
        ["S-TX-9"] => running_on::what_cannot_be_decided_again_is_rolled_back::<H>,
        ["S-TX-10"] => starting::a_saga_starts_with_its_first_step::<H> needs StartsInTransactions,
        ["S-TX-10"] => starting::a_taken_key_is_not_granted::<H> needs StartsInTransactions,
        ["S-TX-10"] => starting::one_of_two_starts_is_granted::<H> needs StartsInTransactions,
        ["S-TX-10", "S-TX-4"] => starting::what_fails_starts_nothing::<H> needs StartsInTransactions,
        ["S-TX-10"] => starting::a_saga_that_is_only_started_waits::<H> needs StartsInTransactions,
        ["S-TX-4"] => transaction::a_batch_commits_together::<H>,
        ["S-TX-4"] => transaction::a_dropped_call_happened_whole_or_not_at_all::<H>,
        ["S-TX-4"] => limits::a_step_transaction_carries_a_full_batch::<H>,
        ["S-TX-5"] => transaction::a_moved_saga_is_decided_again::<H>,
        ["S-TX-14"] => transaction::a_moved_saga_brings_its_records::<H>,
        ["S-TX-5", "S-TX-4"] => transaction::a_record_that_exists_rolls_all_back::<H>,
        ["S-TX-5", "S-TX-4"] => transaction::a_row_that_is_gone_rolls_all_back::<H>,
        ["S-TX-5", "S-REC-5"] => concurrency::a_step_and_its_cancellation_exclude_each_other::<H>,
        ["S-TX-6"] => transaction::a_handler_that_ended_the_transaction_is_named::<H> needs EndedTransaction,
        ["S-TX-7"] => transaction::without_a_claim_nothing_is_written::<H>,
        ["S-TX-8"] => transaction::an_abandoned_handler_rolls_all_back::<H>,
        ["S-TX-12"] => together::a_claim_whose_handler_has_run_is_passed_over::<H>,
        ["S-TX-13", "S-TX-9"] => together::a_claim_that_goes_back_runs_again_without_its_writes::<H>,
        ["S-TX-15"] => together::a_rollback_goes_back_to_the_last_savepoint::<H>,
        ["S-TX-16", "S-TX-4"] => tenants::claims_of_several_tenants_commit_together::<H>,
        ["S-TX-16", "S-TX-1"] => tenants::a_claim_is_judged_by_the_records_of_its_own_tenant::<H>,
        ["S-TX-16", "S-TX-14"] => tenants::a_moved_saga_brings_the_records_of_its_own_tenant::<H>,
        ["S-TX-16", "S-TX-10"] => tenants::one_key_starts_in_several_tenants::<H> needs StartsInTransactions,
        ["S-TX-11"] => transaction::a_handler_with_a_conflict_rolls_all_back::<H>,
        ["S-TX-4"] => batch_steps::one_call_writes_for_many_sagas::<H>,
        ["S-TX-3", "S-TX-4"] => batch_steps::an_answer_concerns_its_own_saga_only::<H>,
        ["S-TX-3", "S-TX-8"] => batch_steps::a_bad_order_is_found_by_halving::<H>,
        ["S-TX-6"] => batch_steps::an_order_that_ends_the_transaction_fails_alone::<H> needs EndedTransaction,
        ["S-TX-15", "S-TX-3"] => batch_steps::a_trusted_batch_that_fails_runs_again_with_savepoints::<H>,
    ]
}
