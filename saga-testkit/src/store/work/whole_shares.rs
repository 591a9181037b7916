//! A claim of a share that is a whole definition takes and answers what a claim does.

use super::{begun, claims, recovery};
use crate::check::Outcome;
use crate::fixture::Bench;
use crate::harness::StoreHarness;

pub(crate) async fn a_share_brings_all_that_is_needed<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    claims::a_claim_brings_all_that_is_needed(bench.claiming_shares()).await
}

pub(crate) async fn the_oldest_due_of_a_share_comes_first<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    claims::the_oldest_due_comes_first(bench.claiming_shares()).await
}

pub(crate) async fn a_recorded_step_of_a_share_is_deleted<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    claims::work_of_a_recorded_step_is_deleted(bench.claiming_shares()).await
}

pub(crate) async fn an_ended_lease_of_a_share_is_free_and_recovered<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    recovery::an_ended_lease_is_free_and_recovered(bench.claiming_shares()).await
}

pub(crate) async fn a_share_of_a_member_that_left_is_free_and_suspect<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    recovery::the_work_of_a_member_that_left_is_free_and_suspect(bench.claiming_shares()).await
}

pub(crate) async fn suspicion_stays_in_a_share<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    recovery::suspicion_stays_until_the_row_is_finished(bench.claiming_shares()).await
}

pub(crate) async fn a_share_that_was_only_claimed_has_not_begun<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    begun::a_row_that_was_only_claimed_has_not_begun(bench.claiming_shares()).await
}

pub(crate) async fn a_beginning_is_remembered_in_a_share<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    begun::a_beginning_is_remembered(bench.claiming_shares()).await
}

pub(crate) async fn a_claim_of_shares_can_leave_what_others_left<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    begun::a_claim_can_leave_what_others_left(bench.claiming_shares()).await
}

pub(crate) async fn a_dead_member_takes_no_share_over<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    begun::a_dead_member_takes_nothing_over(bench.claiming_shares()).await
}
