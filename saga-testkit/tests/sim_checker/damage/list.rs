use saga_testkit::checker::{Guarantee, Ledger};
use saga_testkit::sim::Random;

use super::{effects, messages, pauses, rest, services, signals, starts, time, undo};

/// One kind of damage. It answers nothing where the ledger has no place for it.
pub(crate) struct Damage {
    pub(crate) name: &'static str,
    pub(crate) breaks: Guarantee,
    pub(crate) apply: fn(&mut Ledger, &mut Random) -> Option<()>,
}

macro_rules! damages {
    ($($breaks:ident $folder:ident::$name:ident,)*) => {
        pub(crate) const ALL: &[Damage] = &[
            $(Damage { name: stringify!($name), breaks: Guarantee::$breaks, apply: $folder::$name },)*
        ];
    };
}

damages! {
    G1 effects::write_without_record,
    G1 effects::record_without_write,
    G1 effects::output_of_another_attempt_recorded,
    G1 effects::completed_without_a_write,
    G2 effects::transaction_committed_twice,
    G2 effects::write_out_of_nothing,
    G3 effects::key_changes_between_attempts,
    G3 effects::completed_without_a_call,
    G3 effects::effect_taken_twice_outside,
    G3 effects::output_recorded_that_nobody_returned,
    G3 effects::step_reads_another_output,
    G3 signals::acknowledged_and_lost,
    G3 signals::two_count,
    G3 signals::out_of_nothing,
    G4 messages::message_lost,
    G4 messages::message_of_a_rolled_back_attempt,
    G4 messages::message_out_of_nothing,
    G4 messages::message_under_two_ids,
    G4 messages::outbox_not_empty,
    G5 undo::undo_missing,
    G5 undo::completed_though_cancelled,
    G5 undo::begun_after_the_cancel,
    G5 pauses::done_while_paused,
    G5 pauses::undone_while_paused,
    G5 pauses::tried_again_while_paused,
    G5 undo::undo_invented,
    G5 undo::undo_of_a_completed_saga,
    G5 undo::undos_in_the_wrong_order,
    G5 undo::undo_with_a_foreign_output,
    G5 undo::undo_without_the_output_it_takes,
    G5 undo::done_after_the_undo,
    G5 undo::done_after_it_was_barred,
    G5 undo::compensated_without_a_cause,
    G5 undo::steps_out_of_order,
    G5 undo::saga_left_unfinished,
    G5 undo::saga_left_stuck,
    G5 undo::stuck_without_a_cause,
    G5 undo::pivot_done_and_compensated,
    G5 time::begun_too_early,
    G5 time::awake_too_early,
    G5 time::overdue_too_early,
    G5 time::overdue_without_a_deadline,
    G5 time::completed_though_overdue,
    G3 services::step_asked_for_by_two_commands,
    G3 services::told_an_output_that_was_not_recorded,
    G3 services::completed_without_being_told,
    G4 services::reply_to_nothing,
    G4 services::reply_to_another_step,
    G4 services::one_id_for_two_messages,
    G4 services::message_of_no_saga,
    G4 services::message_kept_by_nobody,
    G5 services::told_that_it_did_not_happen,
    G5 services::host_never_undid,
    G5 services::done_after_it_was_taken_back,
    G8 services::letter_left_open,
    G8 services::work_left_at_a_host,
    G6 starts::started_saga_is_absent,
    G6 starts::second_payload_accepted,
    G6 starts::second_payload_runs,
    G6 starts::own_payload_refused,
    G6 starts::two_starts_made_it,
    G6 starts::stranger_stored,
    G7 starts::outcome_changes,
    G7 starts::two_acts_on_one_revision,
    G7 starts::older_epoch_commits,
    G8 rest::called_without_end,
    G8 rest::work_left_behind,
    G9 messages::events_swapped,
    G9 messages::events_under_two_ordering_keys,
    G10 rest::engine_panicked,
    G10 rest::work_after_shutdown,
    G11 rest::saga_forgotten,
    G12 rest::message_of_another_tenant,
    G12 rest::key_shared_by_tenants,
    G12 rest::output_of_another_tenant,
    G12 rest::refused_because_of_another_tenant,
}
