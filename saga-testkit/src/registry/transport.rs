//! The checks of a transport.

use super::checks::checks;
use crate::check::Check;
use crate::harness::TransportHarness;
use crate::transport::{self, acknowledge, content, dead_letters, delivery, full_queue, ordering, prefetch, publish};

/// Every check of a transport.
pub fn transport_checks<H: TransportHarness>() -> Vec<Check<transport::Bench<H>>> {
    checks![
        ["T-PUB-1"] => publish::each_message_is_answered_in_order::<H>,
        ["T-PUB-1"] => publish::a_confirmed_message_is_delivered::<H>,
        ["T-PUB-1"] => publish::no_subscriber_is_no_error::<H>,
        ["T-PUB-1"] => publish::an_empty_call_answers_nothing::<H>,
        ["T-PUB-1", "T-SUB-2"] => publish::a_message_outlives_its_receiver::<H>,
        ["T-PUB-2"] => publish::a_refused_message_is_alone::<H>,
        ["T-PUB-3"] => ordering::one_key_comes_in_order::<H>,
        ["T-PUB-3"] => ordering::one_call_keeps_the_order_of_a_key::<H>,
        ["T-PUB-3"] => ordering::many_keys_keep_their_orders::<H>,
        ["T-PUB-4"] => publish::the_same_id_is_delivered_again::<H>,
        ["T-PUB-5"] => publish::what_is_for_one_receiver_needs_one::<H>,
        ["T-PUB-6"] => full_queue::a_full_queue_is_alone::<H>,
        ["T-PUB-7"] => full_queue::what_takes_messages_is_reachable::<H>,
        ["T-SUB-1"] => delivery::every_name_gets_every_message::<H>,
        ["T-SUB-1"] => delivery::one_of_a_name_gets_each_message::<H>,
        ["T-SUB-1"] => delivery::only_its_topics_are_received::<H>,
        ["T-SUB-1"] => delivery::several_topics_are_received::<H>,
        ["T-SUB-1"] => delivery::another_process_receives::<H>,
        ["T-SUB-1"] => delivery::a_receiver_waits_for_what_comes::<H>,
        ["T-SUB-1"] => delivery::a_dropped_receive_loses_nothing::<H>,
        ["T-SUB-2"] => acknowledge::what_was_not_settled_comes_again::<H>,
        ["T-SUB-2"] => acknowledge::what_was_accepted_does_not_come_again::<H>,
        ["T-SUB-2"] => acknowledge::settling_takes_the_messages_named::<H>,
        ["T-SUB-3"] => acknowledge::a_rejected_message_comes_again::<H>,
        ["T-SUB-3"] => acknowledge::a_message_is_given_up_in_the_end::<H>,
        ["T-SUB-3"] => acknowledge::a_rejected_message_holds_up_no_other::<H>,
        ["T-SUB-4"] => prefetch::no_more_than_prefetch_is_delivered::<H>,
        ["T-SUB-4"] => prefetch::a_limit_is_obeyed::<H>,
        ["T-SUB-4"] => prefetch::a_full_receiver_leaves_the_rest_to_others::<H>,
        ["T-SUB-5"] => content::everything_arrives_as_it_was_sent::<H>,
        ["T-SUB-5"] => content::large_and_empty_payloads_arrive::<H>,
        ["T-SUB-5"] => content::tenants_are_kept_apart::<H>,
        ["T-SUB-6"] => content::a_user_is_what_the_transport_checked::<H>,
        ["T-SUB-7"] => acknowledge::a_void_tag_is_settled_without_effect::<H>,
        ["T-SUB-8", "T-SUB-2"] => acknowledge::what_another_process_had_is_marked::<H>,
        ["T-DEAD-1"] => dead_letters::what_was_given_up_is_received::<H>,
        ["T-DEAD-1"] => dead_letters::a_dead_letter_that_is_not_accepted_comes_again::<H>,
        ["T-DEAD-1"] => dead_letters::nothing_else_is_a_dead_letter::<H>,
    ]
}
