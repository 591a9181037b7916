//! One suite for every kind of Redis: `L-1` to `L-8`, after the clauses of `saga_redis::LockService`. Flawed services show that
//! the checks find something.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod checks;
mod flaws;
mod place;

/// Runs each check on each kind of Redis.
macro_rules! on_each_place {
    ($($check:ident),* $(,)?) => {
        on_each_place!(@ server: $($check),*);
        on_each_place!(@ replicated: $($check),*);
        on_each_place!(@ cluster: $($check),*);
    };
    (@ $place:ident: $($check:ident),*) => {
        mod $place {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $check() {
                    crate::checks::$check(&crate::place::Place::$place(stringify!($check)).await).await;
                }
            )*
        }
    };
}

on_each_place![
    l1_one_holder_has_an_entity,
    l1_holders_at_once_take_turns,
    l1_tenants_never_meet,
    l2_tokens_grow,
    l2_tokens_grow_after_all_was_lost,
    l3_a_holder_that_asks_again_gets_the_same_token,
    l4_turns_are_in_the_order_of_asking,
    l5_a_silent_waiter_is_passed_over,
    l6_a_renewal_lets_the_lease_begin_anew,
    l6_a_lock_that_was_lost_cannot_be_renewed,
    l7_a_release_ends_only_the_own_lock,
    l7_a_withdrawal_ends_only_the_own_request,
    l8_all_entities_or_the_holder_waits,
    l8_crossing_requests_end,
];
