//! A handler that commits by itself: the server refuses it, and nothing of the batch is kept (G1, G2).

use saga_core::store::Status;

use super::support::{Body, Place, begun, complete, status};

const ENDINGS: [&str; 5] = ["COMMIT", "COMMIT; BEGIN", "ROLLBACK", "ROLLBACK; BEGIN", "COMMIT; BEGIN; SAVEPOINT mine"];

/// A batch of two whose second handler ends the transaction.
async fn ends(place: &Place, ending: &'static str) -> (saga_core::store::TransactError, Vec<String>) {
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
