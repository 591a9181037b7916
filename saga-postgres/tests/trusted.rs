//! Steps that were clean lately run without savepoints; what goes wrong among them is taken back all the same.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::{Arc, Mutex};

use saga_core::store::{Claim, Status, Verdict};
use saga_postgres::PostgresStore;
use sqlx::Executor as _;
use support::{Body, Place, begun, keep, status, write_note};

/// A store that trusts a step after one clean run, and two claims of a step that it trusts.
async fn trusting(place: &Place) -> (PostgresStore, [Claim; 2]) {
    let store = PostgresStore::connect_with(place.options().trusted_after(1)).await.unwrap();
    support::complete(&store, "k-0").await.unwrap();
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    (store, claims)
}

#[tokio::test]
async fn handlers_of_trusted_steps_run_without_savepoints() {
    let place = Place::new().await;
    let (store, claims) = trusting(&place).await;
    let has_savepoint = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&has_savepoint);
    Body::new(&claims)
        .note("one")
        .then(move |conn| {
            let seen = Arc::clone(&seen);
            Box::pin(async move {
                let found = conn.execute("ROLLBACK TO SAVEPOINT saga_handler").await.is_ok();
                seen.lock().unwrap().push(found);
                Verdict::RollBack
            })
        })
        .transact(&store)
        .await
        .unwrap();
    assert_eq!(*has_savepoint.lock().unwrap(), [false, true], "it ran again, behind one");
    assert_eq!(store.statistics().trusted, 0, "its failure cost the step its trust");
    assert_eq!(place.notes().await, ["k-0", "one"]);

    let claims = [begun(&store, "k-3").await, begun(&store, "k-4").await];
    support::complete(&store, "k-5").await.unwrap();
    Body::new(&claims).note("three").note("four").transact(&store).await.unwrap();
    assert_eq!(store.statistics().trusted, 1, "after another clean run it is trusted again");
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn what_a_trusted_handler_gets_wrong_is_taken_back_alone() {
    let place = Place::new().await;
    let (store, claims) = trusting(&place).await;
    let fails = Body::new(&claims).note("one").then(|conn| {
        Box::pin(async move {
            write_note(conn, "undone").await.unwrap();
            keep(&conn.execute("SELECT 1 / 0").await)
        })
    });
    fails.transact(&store).await.unwrap();
    assert_eq!(place.notes().await, ["k-0", "one"]);
    assert_eq!(status(&store, "k-1").await, Some(Status::Completed));
    assert_eq!((store.statistics().trusted, store.statistics().rollbacks), (0, 1));
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn who_keeps_quiet_about_a_failed_statement_is_found_among_the_trusted() {
    let place = Place::new().await;
    let (store, claims) = trusting(&place).await;
    let error = Body::new(&claims).sends("SELECT 1 / 0").note("two").transact(&store).await.unwrap_err();
    assert_eq!((error.culprit, error.ended_transaction), (Some(0), false), "{error:?}");
    assert_eq!(place.notes().await, ["k-0"]);
    store.close().await;
    place.remove().await;
}

/// Without the session being read-only outside the transaction, the second handler's write would be there by itself.
#[tokio::test]
async fn g1_behind_a_trusted_handler_that_ends_the_transaction_nothing_is_written() {
    for ending in ["COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN"] {
        let place = Place::new().await;
        let (store, claims) = trusting(&place).await;
        let error = Body::new(&claims).sends(ending).note("two").transact(&store).await.unwrap_err();
        assert_eq!((error.culprit, error.ended_transaction), (Some(0), true), "{ending}: {error:?}");
        assert_eq!(place.notes().await, ["k-0"], "{ending}");
        for key in ["k-1", "k-2"] {
            assert_eq!(status(&store, key).await, Some(Status::Running), "{ending}");
        }
        // Its connections write as before.
        support::complete(&store, "k-3").await.unwrap();
        assert_eq!(place.notes().await, ["k-0", "k-3"], "{ending}");
        store.close().await;
        place.remove().await;
    }
}

#[tokio::test]
async fn a_connection_that_ran_the_trusted_writes_outside_transactions_again() {
    let place = Place::new().await;
    let options = place.options().trusted_after(1).connections_max(1);
    let store = PostgresStore::connect_with(options).await.unwrap();
    support::complete(&store, "k-0").await.unwrap();
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    Body::new(&claims).note("one").note("two").transact(&store).await.unwrap();
    assert_eq!(store.statistics().trusted, 1);
    // A start is a statement that commits by itself.
    begun(&store, "k-3").await;
    assert_eq!(status(&store, "k-3").await, Some(Status::Running));
    store.close().await;
    place.remove().await;
}
