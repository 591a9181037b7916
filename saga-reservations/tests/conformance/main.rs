//! One suite for every place where reservations can be: `R-1` to `R-26`, after the clauses of
//! `saga_reservations::Reservations`. Flawed reservations show that the checks find something.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod checks;
mod clock;
mod flaws;
#[path = "../interposed/mod.rs"]
mod interposed;
mod place;

/// Runs each check on each place.
macro_rules! on_each_place {
    ($($check:ident),* $(,)?) => {
        on_each_place!(@ memory: $($check),*);
        on_each_place!(@ sqlite: $($check),*);
        on_each_place!(@ postgres: $($check),*);
        on_each_place!(@ grpc: $($check),*);
        on_each_place!(@ redis_over_sqlite: $($check),*);
        on_each_place!(@ redis_over_postgres: $($check),*);
    };
    (@ $place:ident: $($check:ident),*) => {
        mod $place {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $check() {
                    crate::checks::$check(&crate::place::Place::$place().await).await;
                }
            )*
        }
    };
}

on_each_place![
    r1_no_more_is_taken_than_there_is,
    r2_one_key_is_one_reservation,
    r3_a_key_with_other_lines_is_refused,
    r4_a_release_bars_a_late_request,
    r5_a_confirmation_may_be_repeated,
    r6_units_come_back_once,
    r7_a_late_confirmation_is_refused,
    r8_a_late_confirmation_may_take_the_units_again,
    r9_a_late_confirmation_takes_nothing_from_others,
    r10_another_token_changes_nothing,
    r11_lines_are_taken_all_or_none,
    r12_tokens_grow,
    r13_an_extension_only_makes_longer,
    r14_an_extension_revives_nothing,
    r15_confirmed_units_are_given_back_once,
    r16_a_unique_intent_is_held_once_and_confirmed_once,
    r17_units_of_expired_holds_are_free,
    r18_a_sweep_ends_what_is_over_and_nothing_else,
    r19_what_cannot_be_served_is_refused,
    r20_requests_at_once_take_what_there_is,
    r21_what_ended_is_forgotten_and_the_rest_is_not,
    r22_a_release_and_its_request_may_come_at_once,
    r23_what_was_confirmed_stays_through_a_flush,
    r24_a_release_bars_a_late_request_through_a_flush,
    r25_a_hold_that_was_lost_is_over,
    r26_a_capacity_is_that_of_now_through_a_flush,
];
