//! The checks of messages in a store.

use super::checks::checks;
use crate::check::Check;
use crate::fixture::Bench;
use crate::harness::StoreHarness;
use crate::store::{
    concurrency,
    messages::{hints, inbox, lanes, letters, outbox},
    work::{members, recovery},
};

pub(super) fn messages<H: StoreHarness>() -> Vec<Check<Bench<H>>> {
    checks![
        ["S-OUT-1"] => lanes::only_lanes_with_rows_are_leased::<H>,
        ["S-OUT-1"] => lanes::a_lane_has_one_owner::<H>,
        ["S-OUT-1"] => lanes::a_released_lane_is_leased_under_the_next_epoch::<H>,
        ["S-OUT-1", "S-MEM-2"] => lanes::a_lane_of_a_vanished_owner_is_free::<H>,
        ["S-OUT-1"] => lanes::a_renewed_lane_lasts::<H>,
        ["S-OUT-1"] => lanes::a_lane_that_its_owner_lost_track_of_is_leased_again::<H>,
        ["S-OUT-1"] => outbox::a_lane_with_parked_keys_only_is_not_leased::<H>,
        ["S-OUT-1"] => concurrency::a_lane_goes_to_one_of_many::<H>,
        ["S-OUT-2"] => lanes::a_lane_whose_epoch_moved_reads_nothing::<H>,
        ["S-OUT-2"] => outbox::a_message_is_read_as_it_was_written::<H>,
        ["S-OUT-2"] => outbox::a_key_is_read_by_position::<H>,
        ["S-OUT-2"] => outbox::a_limited_read_takes_the_first_of_a_key::<H>,
        ["S-OUT-2"] => outbox::many_lanes_are_read_like_each::<H>,
        ["S-OUT-3"] => outbox::what_was_sent_is_deleted::<H>,
        ["S-OUT-3"] => outbox::a_message_waits_until_it_is_sent::<H>,
        ["S-OUT-3"] => outbox::the_depth_tells_the_age_of_the_oldest::<H>,
        ["S-OUT-4", "S-OUT-2"] => outbox::a_parked_key_holds_up_itself_only::<H>,
        ["S-OUT-4"] => outbox::a_released_key_is_read_again::<H>,
        ["S-OUT-4"] => outbox::a_key_that_is_parked_for_a_time_is_read_after_it::<H>,
        ["S-OUT-6"] => outbox::a_discarded_message_lets_its_key_go_on::<H>,
        ["S-OUT-4"] => outbox::one_key_of_two_tenants_is_parked_apart::<H>,
        ["S-OUT-7"] => outbox::a_message_is_read_when_it_is_due::<H>,
        ["S-OUT-8"] => outbox::a_key_waits_until_its_message_is_sent::<H>,
        ["S-OUT-5"] => outbox::a_message_that_waits_is_not_inserted_again::<H>,
        ["S-INBOX-1"] => inbox::what_was_received_outlives_its_process::<H>,
        ["S-INBOX-1"] => inbox::a_leased_message_belongs_to_its_receiver::<H>,
        ["S-INBOX-2"] => inbox::a_message_id_is_new_once::<H>,
        ["S-INBOX-3"] => inbox::messages_are_claimed_like_commands::<H>,
        ["S-INBOX-3"] => inbox::a_message_of_a_vanished_owner_is_suspect::<H>,
        ["S-INBOX-4"] => inbox::old_ids_are_forgotten::<H>,
        ["S-DEAD-1"] => letters::a_letter_is_kept_as_it_was_added::<H>,
        ["S-DEAD-2"] => letters::one_letter_of_a_message_is_open::<H>,
        ["S-DEAD-3"] => letters::a_list_of_letters_obeys_its_filter::<H>,
        ["S-DEAD-4"] => letters::a_replayed_letter_is_work_again::<H>,
        ["S-DEAD-4"] => letters::what_cannot_be_read_cannot_be_replayed::<H>,
        ["S-DEAD-5"] => letters::a_discarded_letter_is_closed::<H>,
        ["S-DEAD-6"] => letters::a_decision_stays_as_it_was::<H>,
        ["S-MEM-1"] => members::each_member_gets_a_higher_id::<H>,
        ["S-MEM-2"] => members::a_dead_member_never_lives_again::<H>,
        ["S-MEM-2"] => recovery::the_work_of_a_silent_member_is_free::<H>,
        ["S-MEM-2"] => recovery::work_leased_to_no_member_is_free::<H>,
        ["S-MEM-2"] => members::a_beat_keeps_what_was_leased::<H>,
        ["S-MEM-3"] => members::a_living_member_answers_its_heartbeat::<H>,
        ["S-MEM-3", "S-MEM-2"] => members::a_member_that_left_is_dead::<H>,
        ["S-HINT-1"] => hints::another_process_hears_of_what_was_committed::<H> needs Hints,
        ["S-HINT-1"] => hints::each_of_several_hears_every_kind_of_hint::<H> needs Hints,
        ["S-MEM-5"] => members::a_member_that_rejoins_has_its_rows::<H>,
        ["S-MEM-5"] => members::what_was_taken_meanwhile_stays_with_its_new_owner::<H>,
        ["S-MEM-5", "S-MEM-3"] => members::a_former_identity_is_dead::<H>,
        ["S-MEM-4"] => members::members_of_an_earlier_process_are_dead::<H> needs Alone,
    ]
}
