//! Mistakes in the functions that keep locks. The suite of all stores finds each one, and passes without them.

use std::sync::Arc;
use std::time::Duration;

use saga_core::Entity;
use saga_core::store::SemanticLocks as _;
use saga_testkit::{StoreBench, store_checks};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::support::{Edit, Place, Postgres, asks_for, begun};

/// What is wrong, the check that finds it, and how the shipped functions are edited. A text that a function does not have fails.
type Mistake = (&'static str, &'static str, &'static [Edit]);

const MISTAKES: &[Mistake] = &[
    (
        "a lock that ends goes to the last of the queue",
        "S-LOCK-3/waits_are_granted_in_their_order",
        &[
            ("hand_over", "ORDER BY q.number LIMIT 1)) AS owner", "ORDER BY q.number DESC LIMIT 1)) AS owner"),
            ("hand_over", "WHERE NOT", "WHERE true OR NOT"),
        ],
    ),
    (
        "of the entities of a lock only the first is handed over",
        "S-LOCK-1/all_entities_are_granted_or_none",
        &[("hand_over", "unnest(p_kinds, p_ids)", "unnest(p_kinds[1:1], p_ids[1:1])")],
    ),
    (
        "only one request is granted when a lock ends",
        "S-LOCK-5/each_entity_of_a_lock_goes_to_its_own_next_saga",
        &[("hand_over", "END LOOP", "EXIT; END LOOP")],
    ),
    (
        "a request gets one entity while it waits for another one",
        "S-LOCK-1/a_request_gets_nothing_before_all_its_entities_are_free",
        &[("hand_over", "WHERE NOT", "WHERE true OR NOT")],
    ),
    (
        "the row of a saga that gets its lock is not due",
        "S-LOCK-5/the_commit_that_ends_a_lock_grants_the_next",
        &[("hand_over", "SET due_at = p_now", "SET due_at = due_at")],
    ),
    (
        "the end of a lock hands over nothing",
        "S-LOCK-5/the_commit_that_ends_a_lock_grants_the_next",
        &[("unlock", "cardinality(v_met) > 0", "cardinality(v_met) > 1000")],
    ),
    (
        "a saga ends locks of other tenants",
        "S-LOCK-9/tenants_have_entities_of_their_own",
        &[("unlock", "q.tenant = u.tenant AND q.owner", "q.owner")],
    ),
    (
        "a transaction does not look for stored requests",
        "S-LOCK-10/a_claim_without_its_lock_is_not_granted",
        &[("acquire_locks", "RAISE SQLSTATE 'SG001'", "NULL")],
    ),
    (
        "two transactions have one entity",
        "S-LOCK-10/an_entity_of_an_open_transaction_is_granted_to_no_other",
        &[("acquire_locks", "pg_try_advisory_xact_lock(", "pg_try_advisory_xact_lock_shared(")],
    ),
    (
        "a lock that was granted before is one of other entities",
        "S-LOCK-10/a_lock_that_was_granted_before_is_kept",
        &[("acquire_locks", "= p_ids[", "<= p_ids[")],
    ),
    (
        "a lock that was granted before counts as one of the transaction",
        "S-LOCK-10/a_lock_that_was_granted_before_is_kept",
        &[("acquire_locks", "ORDER BY e.kind, e.id), true", "ORDER BY e.kind, e.id), false")],
    ),
    (
        "the tokens of transactions do not grow",
        "S-LOCK-2/a_lock_lasts_as_long_as_the_transaction",
        &[("acquire_locks", "v_token := nextval(", "v_token := 0 * nextval(")],
    ),
    (
        "a request is granted although another saga has the entity",
        "S-LOCK-1/one_saga_has_an_entity_at_a_time",
        &[("ask_for_lock", "end_deadlocks(p_tenant, p_owner, v_now)", "grant_lock(v_number, v_now)")],
    ),
    (
        "a request overtakes one that waits",
        "S-LOCK-3/waits_are_granted_in_their_order",
        &[("lock_is_blocked", "q.number < m.number", "false")],
    ),
    (
        "a request that waits keeps its row",
        "S-LOCK-4/a_wait_frees_its_row",
        &[("ask_for_lock", "SET owner = NULL, leased_until = NULL, due_at", "SET due_at")],
    ),
    (
        "sagas that wait for each other wait on",
        "S-LOCK-6/of_a_ring_the_youngest_gives_up",
        &[("ask_for_lock", "end_deadlocks(p_tenant, p_owner, v_now)", "lock_is_blocked(v_number)")],
    ),
    (
        "a request waits on when its time is over",
        "S-LOCK-7/a_wait_ends_with_its_time",
        &[("ask_for_lock", "v_until <= v_now", "v_until < '-infinity'")],
    ),
    (
        "a request that gave up holds up those behind it",
        "S-LOCK-7/a_request_that_gave_up_holds_up_no_other",
        &[("ask_for_lock", "hand_over(p_tenant, p_kinds, p_ids, v_now)", "lock_is_blocked(v_number)")],
    ),
    (
        "a process that lost the row asks all the same",
        "S-LOCK-8/a_lost_row_asks_for_nothing",
        &[("ask_for_lock", "AND w.epoch = p_epoch", "")],
    ),
];

/// A check that does not end has failed.
const LONG: Duration = Duration::from_mins(1);

/// A check that fails because a function cannot be called has found nothing.
const IS_BROKEN: &str = "a call failed that should not";

#[tokio::test]
async fn the_suite_finds_each_mistake_in_the_functions_of_locks() {
    let checks = store_checks::<Postgres>();
    let mut missed = Vec::new();
    for &(mistake, id, edits) in MISTAKES {
        let check = checks.iter().find(|check| check.id() == id).unwrap_or_else(|| panic!("{id} is no check"));
        let run = async { check.run(StoreBench::fresh(Arc::new(Postgres::spoilt(edits))).await).await };
        match tokio::time::timeout(LONG, run).await {
            Ok(Err(failed)) if !failed.0.contains(IS_BROKEN) => println!("{mistake}: {failed}"),
            other => missed.push((mistake, id, other)),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Whether others can lock the account of Ada while a transaction is open that was refused it, since a row names it.
async fn is_free_behind_a_refusal(place: &Place) -> bool {
    let store = place.open().await;
    let has = begun(&store, "k-1").await;
    store.ask_for_locks(vec![asks_for(&has, Entity::new("account", "ada"))]).await.unwrap();
    let (mut refused, mut other) = (place.connection().await, place.connection().await);
    refused.execute("BEGIN").await.unwrap();
    let take = format!(
        "SELECT count(*) FROM {}.acquire_locks(ARRAY[NULL::bigint], ARRAY['held'], ARRAY[1], ARRAY[1], ARRAY[''], \
         ARRAY['account'], ARRAY['ada'], 50)",
        place.schema
    );
    let taken: i64 = sqlx::query_scalar(AssertSqlSafe(take)).fetch_one(&mut refused).await.unwrap();
    assert_eq!(taken, 0);
    let lock = format!("SELECT pg_try_advisory_xact_lock({}.entity_lock('', 'account', 'ada'))", place.schema);
    let is_free = sqlx::query_scalar(AssertSqlSafe(lock)).fetch_one(&mut other).await.unwrap();
    store.close().await;
    is_free
}

/// The transaction that ends the lock of Ada may wait for another entity of this one.
#[tokio::test]
async fn a_transaction_keeps_no_entity_that_it_is_refused() {
    let place = Place::new().await;
    assert!(is_free_behind_a_refusal(&place).await);
    place.remove().await;
}

#[tokio::test]
async fn without_beginning_again_a_transaction_keeps_an_entity_that_it_is_refused() {
    let place = Place::new().await;
    place.open().await.close().await;
    place.spoil("acquire_locks", "RAISE SQLSTATE 'SG001'", "RETURN").await;
    assert!(!is_free_behind_a_refusal(&place).await);
    place.remove().await;
}
