//! A handler that commits by itself: the server refuses it, and nothing of the batch is kept (G1, G2).

use saga_core::store::{Claim, HandlerVerdict, Status, StoreErrorKind, TransactError, WorkRef};
use saga_postgres::fault_injection::Mutant;
use saga_postgres::{PostgresOptions, PostgresStore};
use sqlx::{Connection as _, Executor as _};

use crate::support::{Body, Notes as _, Place, begun, complete, status, write_note};

const ENDINGS: [&str; 5] = ["COMMIT", "COMMIT; BEGIN", "ROLLBACK", "ROLLBACK; BEGIN", "COMMIT; BEGIN; SAVEPOINT mine"];

/// A batch of two whose second handler ends the transaction.
async fn ends(place: &Place, ending: &'static str) -> (TransactError, Vec<String>) {
    let store = place.open().await;
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await, begun(&store, "k-3").await];
    let body = Body::new(&claims).note("one").sends(ending).note("three");
    let error = body.transact(&store).await.unwrap_err();
    assert_eq!(status(&store, "k-1").await, Some(Status::Running), "{ending}");
    let notes = place.notes().await;
    complete(&store, "k-4").await.unwrap();
    store.close().await;
    (error, notes)
}

#[tokio::test]
async fn g1_a_handler_that_ends_its_transaction_keeps_nothing_and_is_named() {
    for ending in ENDINGS {
        let place = Place::new().await;
        let (error, notes) = ends(&place, ending).await;
        assert!(error.ended_transaction, "{ending}: {error:?}");
        assert_eq!(error.culprit, Some(1), "{ending}");
        assert_eq!(notes, Vec::<String>::new(), "{ending}");
        place.remove().await;
    }
}

#[tokio::test]
async fn alone_in_its_transaction_it_is_found_out_too() {
    for ending in ENDINGS {
        let place = Place::new().await;
        let store = place.open().await;
        let claim = begun(&store, "k-1").await;
        let error = Body::new(&[claim]).sends(ending).transact(&store).await.unwrap_err();
        assert_eq!((error.ended_transaction, error.culprit), (true, Some(0)), "{ending}: {error:?}");
        store.close().await;
        place.remove().await;
    }
}

#[tokio::test]
async fn without_the_guard_the_writes_of_the_others_would_be_kept() {
    let place = Place::new().await;
    place.open().await.close().await;
    place.spoil("refuse_commit", "IS DISTINCT FROM", "IS NULL AND NULL IS DISTINCT FROM").await;
    place.spoil("refuse_commit", "RAISE EXCEPTION", "RAISE NOTICE").await;
    let (error, notes) = ends(&place, "COMMIT").await;
    assert!(error.ended_transaction, "it is found out all the same: {error:?}");
    assert_eq!(notes, ["one"]);
    place.remove().await;
}

/// Ends the transaction and writes; each statement by itself, as a step would send them.
async fn writes_behind_a_rollback(store: &PostgresStore, place: &Place) -> (TransactError, Vec<String>) {
    let claims = [begun(store, "k-1").await, begun(store, "k-2").await];
    let body = Body::new(&claims).note("one").then(|conn| {
        Box::pin(async move {
            _ = conn.execute("ROLLBACK").await;
            _ = write_note(conn, "behind").await;
            _ = conn.execute(sqlx::raw_sql("ROLLBACK; INSERT INTO notes (text) VALUES ('in another')")).await;
            HandlerVerdict::Keep
        })
    });
    let error = body.transact(store).await.unwrap_err();
    let notes = place.notes().await;
    // The connections that are left write as they did.
    complete(store, "k-3").await.unwrap();
    assert_eq!(status(store, "k-3").await, Some(Status::Completed));
    (error, notes)
}

#[tokio::test]
async fn g1_a_handler_that_rolls_back_writes_nothing_behind_it() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(place.options().connections_max(1)).await.unwrap();
    let (error, notes) = writes_behind_a_rollback(&store, &place).await;
    assert_eq!((error.ended_transaction, error.culprit), (true, Some(1)), "{error:?}");
    assert_eq!(notes, Vec::<String>::new());
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn a_connection_writes_again_whatever_became_of_its_transaction() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(place.options().connections_max(1)).await.unwrap();
    let claim = begun(&store, "k-1").await;
    // Nothing granted; a handler that gives way; a commit that is refused.
    let stale = Claim { work: WorkRef { epoch: 7, ..claim.work }, ..claim.clone() };
    Body::new(&[stale]).note("never").records(Vec::new()).transact(&store).await.unwrap();
    complete(&store, "k-2").await.unwrap();
    let gives_way = Body::new(std::slice::from_ref(&claim)).then(|_| Box::pin(async { HandlerVerdict::Conflict }));
    gives_way.transact(&store).await.unwrap_err();
    complete(&store, "k-3").await.unwrap();
    let mut conn = place.connection().await;
    let refuses = "ALTER TABLE notes ADD CONSTRAINT once UNIQUE (text) DEFERRABLE INITIALLY DEFERRED";
    conn.execute(refuses).await.unwrap();
    Body::new(&[claim]).note("k-3").transact(&store).await.unwrap_err();
    complete(&store, "k-4").await.unwrap();
    assert_eq!(place.notes().await, ["k-2", "k-3", "k-4"]);
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn without_the_guard_outside_a_handler_writes_behind_its_rollback() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(place.options().mutant(Mutant::AllowsWritesAfterRollback)).await.unwrap();
    let (error, notes) = writes_behind_a_rollback(&store, &place).await;
    assert!(error.ended_transaction, "it is found out all the same: {error:?}");
    assert_eq!(notes, ["behind", "in another"]);
    store.close().await;
    place.remove().await;
}

/// A store of one connection on which a handler leaks a transaction that it nested, and then a saga is started. Answers what
/// the step was told, and the status of both sagas as another session sees them.
async fn leaks(place: &Place, bug: Option<Mutant>) -> (Result<(), TransactError>, [Option<Status>; 2]) {
    let options = place.options().connections_max(1);
    let options = bug.into_iter().fold(options, PostgresOptions::mutant);
    let store = PostgresStore::connect_with(options).await.unwrap();
    let claim = begun(&store, "leaking").await;
    let body = Body::new(&[claim]).then(|conn| {
        Box::pin(async move {
            write_note(conn, "leaking").await.unwrap();
            std::mem::forget(conn.begin().await.unwrap());
            HandlerVerdict::Keep
        })
    });
    let told = body.transact(&store).await;
    begun(&store, "innocent").await;
    let elsewhere = place.open().await;
    let seen = [status(&elsewhere, "leaking").await, status(&elsewhere, "innocent").await];
    elsewhere.close().await;
    store.close().await;
    (told, seen)
}

#[tokio::test]
async fn g6_a_leaked_nested_transaction_does_not_swallow_the_next_start() {
    let place = Place::new().await;
    let (told, seen) = leaks(&place, None).await;
    let error = told.unwrap_err();
    assert_eq!((error.ended_transaction, error.culprit), (true, Some(0)), "{error:?}");
    assert_eq!(seen, [Some(Status::Running), Some(Status::Running)]);
    assert_eq!(place.notes().await, Vec::<String>::new());
    place.remove().await;
}

#[tokio::test]
async fn g1_a_leak_in_a_batch_commits_nothing_of_it() {
    let place = Place::new().await;
    let store = place.open().await;
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    let body = Body::new(&claims).note("one").then(|conn| {
        Box::pin(async move {
            std::mem::forget(conn.begin().await.unwrap());
            HandlerVerdict::Keep
        })
    });
    let error = body.transact(&store).await.unwrap_err();
    // Which of them it was comes out when they run again apart.
    assert_eq!((error.ended_transaction, error.culprit), (false, None), "{error:?}");
    assert_eq!(error.error.kind(), StoreErrorKind::Misuse);
    assert_eq!(place.notes().await, Vec::<String>::new());
    Body::new(&claims).note("one").note("two").transact(&store).await.unwrap();
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn without_a_look_at_the_transaction_a_start_that_was_answered_is_lost() {
    let place = Place::new().await;
    let (told, seen) = leaks(&place, Some(Mutant::SkipsNestingCheck)).await;
    assert!(told.is_ok(), "the release of a savepoint is taken for a commit: {told:?}");
    assert_eq!(seen, [Some(Status::Running), None], "a saga does not exist whose start was answered");
    place.remove().await;
}
