//! A rejection inside a batch: its writes are gone, and it is recorded by the commit that carries the others (G1).

use std::sync::Arc;

use saga_core::key::Tenant;
use saga_core::store::{Advance, Changes, HandlerVerdict, RecordedOutcome, Records as _, Status};
use saga_postgres::PostgresStore;
use saga_postgres::fault_injection::Mutant;
use sqlx::Executor as _;

use crate::support::{Body, Meeting, Notes as _, Place, begun, completed, status, write_note};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_rejection_in_a_batch_takes_its_own_writes_back_and_nothing_else() {
    let place = Place::new().await;
    let store = place.open().await;
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await, begun(&store, "k-3").await];
    let mut rejected = completed(&claims[1]);
    rejected.saga =
        Some(Advance { id: claims[1].saga, expected: 1, status: Status::Compensated, state: vec![2], expiry: None });
    rejected.records[0].outcome = RecordedOutcome::Rejected;
    let meeting = Arc::new(Meeting::default());
    let body = Body::new(&claims)
        .note("one")
        .then(|conn| {
            Box::pin(async move {
                write_note(conn, "two").await.unwrap();
                // The rejecting statement fails, which is what a check constraint of the user's does.
                sqlx::query("SELECT 1 / 0").execute(conn).await.unwrap_err();
                HandlerVerdict::RollBack
            })
        })
        .note_and_meet("three", &meeting)
        .besides(Changes { ..rejected });
    let running = tokio::spawn({
        let store = store.clone();
        async move { body.transact(&store).await }
    });
    meeting.entered.notified().await;
    let tenant = Tenant::default();
    let record = || store.record_of(&tenant, &claims[1].key, &claims[1].step);
    // Before the commit, nobody else sees anything of it.
    assert_eq!(place.notes().await, Vec::<String>::new());
    assert_eq!(record().await.unwrap(), None);
    meeting.go_on.notify_one();
    running.await.unwrap().unwrap();
    assert_eq!(place.notes().await, ["one", "three"]);
    assert_eq!(record().await.unwrap().map(|record| record.outcome), Some(RecordedOutcome::Rejected));
    assert_eq!(status(&store, "k-2").await, Some(Status::Compensated));
    assert_eq!(status(&store, "k-3").await, Some(Status::Completed));
    store.close().await;
    place.remove().await;
}

/// A batch whose second handler writes and then rejects; what is committed of the three.
async fn rejects(store: &PostgresStore, place: &Place) -> Vec<String> {
    let claims = [begun(store, "k-1").await, begun(store, "k-2").await, begun(store, "k-3").await];
    let mut rejected = completed(&claims[1]);
    rejected.records[0].outcome = RecordedOutcome::Rejected;
    let body = Body::new(&claims)
        .note("one")
        .then(|conn| {
            Box::pin(async move {
                write_note(conn, "two").await.unwrap();
                HandlerVerdict::RollBack
            })
        })
        .note("three")
        .besides(rejected);
    body.transact(store).await.unwrap();
    place.notes().await
}

#[tokio::test]
async fn without_the_savepoint_what_was_rejected_is_kept() {
    let place = Place::new().await;
    let sound = place.open().await;
    assert_eq!(rejects(&sound, &place).await, ["one", "three"]);
    sound.close().await;
    place.remove().await;
    let place = Place::new().await;
    let spoilt = PostgresStore::connect_with(place.options().mutant(Mutant::KeepsRejectedWrites)).await.unwrap();
    assert_eq!(
        rejects(&spoilt, &place).await,
        ["one", "two", "three"],
        "it is recorded as rejected, and has an effect"
    );
    spoilt.close().await;
    place.remove().await;
}

/// A handler that sets a savepoint of its own behind its first write, and rejects; what is committed.
async fn rejects_behind_a_savepoint_of_its_own(store: &PostgresStore, place: &Place) -> Vec<String> {
    let claim = begun(store, "k-1").await;
    let rejected = completed(&claim);
    let body = Body::new(&[claim]).besides(rejected).then(|conn| {
        Box::pin(async move {
            write_note(conn, "before").await.unwrap();
            conn.execute("SAVEPOINT saga_handler").await.unwrap();
            write_note(conn, "behind").await.unwrap();
            HandlerVerdict::RollBack
        })
    });
    body.transact(store).await.unwrap();
    place.notes().await
}

#[tokio::test]
async fn g1_a_savepoint_of_the_handlers_own_does_not_keep_what_was_rejected() {
    let place = Place::new().await;
    let store = place.open().await;
    assert_eq!(rejects_behind_a_savepoint_of_its_own(&store, &place).await, Vec::<String>::new());
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn with_a_savepoint_that_everybody_can_name_what_was_rejected_is_kept() {
    let place = Place::new().await;
    let options = place.options().mutant(Mutant::FixedSavepointName);
    let store = PostgresStore::connect_with(options).await.unwrap();
    assert_eq!(rejects_behind_a_savepoint_of_its_own(&store, &place).await, ["before"]);
    store.close().await;
    place.remove().await;
}
