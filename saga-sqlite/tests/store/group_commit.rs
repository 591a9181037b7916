//! Calls that share a commit, and what one of them may do to the others.

use std::time::Duration;

use crate::support::{
    Body, Gate, all, begun, complete, completed, create_notes, keep, new_saga, notes, refused, status, store,
    write_note,
};
use saga_core::store::{HandlerVerdict, Records as _, RetryClass, Sagas as _, Started, Status, StoreErrorKind};
use saga_sqlite::{SqliteOptions, SqliteStore};

#[tokio::test]
async fn calls_that_wait_together_commit_together() {
    const SAGAS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    // On a busy machine forty calls take longer than a commit waits for others by default.
    let options = SqliteOptions::new(folder.path().join("orders.db")).group_time_max(Duration::from_mins(10));
    let store = SqliteStore::open_with(options).await.unwrap();
    create_notes(&store).await;
    let mut bodies = Vec::new();
    for number in 0..SAGAS {
        let claim = begun(&store, &format!("k-{number}")).await;
        bodies.push(Body::new(&[claim]).then_now(move |conn| keep(&write_note(conn, "note"))));
    }
    let gate = Gate::shut(&store).await;
    let before = store.statistics();
    let answers = all(bodies.into_iter().map(|body| body.transact(&store)), gate.open()).await;
    assert!(answers.iter().all(Result::is_ok));
    let after = store.statistics();
    // The gate's own write holds the transaction open until everybody has come.
    assert_eq!(after.commits - before.commits, 1);
    assert_eq!(after.jobs - before.jobs, SAGAS as u64 + 1);
    assert_eq!(notes(&store).await.len(), SAGAS);
}

#[tokio::test]
async fn a_call_that_fails_in_a_group_fails_alone() {
    let (_folder, store) = store().await;
    let (one, two) = (begun(&store, "k-1").await, begun(&store, "k-2").await);
    // An id that is used fails behind the first row, when half of the call is written.
    let mut broken = new_saga(&store, "k-3").await;
    broken.commands[0].id = two.work.id;
    let good = Body::new(&[one]).then_now(|conn| keep(&write_note(conn, "good")));
    let gate = Gate::shut(&store).await;
    let before = store.statistics();
    let late = new_saga(&store, "k-4").await;
    let (good, broken, late, ()) =
        tokio::join!(good.transact(&store), store.start(vec![broken]), store.start(vec![late]), gate.open());
    good.unwrap();
    assert_eq!(refused(broken).kind(), StoreErrorKind::Misuse);
    assert!(matches!(late.unwrap()[..], [Started::New]));
    assert_eq!(status(&store, "k-1").await, Some(Status::Completed));
    assert_eq!(status(&store, "k-3").await, None);
    assert_eq!(notes(&store).await, ["good"]);
    assert!(store.statistics().rollbacks > before.rollbacks);
}

#[tokio::test]
async fn an_interrupted_write_in_a_group_costs_the_others_a_second_run_and_nothing_else() {
    let (_folder, store) = store().await;
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await, begun(&store, "k-3").await];
    let before = Body::new(&claims[..1]).then_now(|conn| keep(&write_note(conn, "before")));
    let endless = Body::new(&claims[1..2]).limit(Duration::from_millis(30)).then_now(|conn| {
        let sql =
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO notes (text) SELECT i FROM n";
        keep(&conn.execute(sql, ()))
    });
    let behind = Body::new(&claims[2..]).then_now(|conn| keep(&write_note(conn, "behind")));
    let gate = Gate::shut(&store).await;
    let (before, endless, behind, ()) =
        tokio::join!(before.transact(&store), endless.transact(&store), behind.transact(&store), gate.open());
    before.unwrap();
    behind.unwrap();
    let error = endless.unwrap_err();
    assert_eq!((error.culprit, error.error.class()), (Some(0), RetryClass::Transient), "{error}");
    assert_eq!(notes(&store).await, ["before", "behind"]);
}

#[tokio::test]
async fn g2_a_record_that_is_there_keeps_the_second_of_two_in_one_group_away() {
    let (_folder, store) = store().await;
    let claim = begun(&store, "k-1").await;
    let twice =
        [(); 2].map(|()| Body::new(std::slice::from_ref(&claim)).then_now(|conn| keep(&write_note(conn, "once"))));
    let gate = Gate::shut(&store).await;
    let answers = all(twice.into_iter().map(|body| body.transact(&store)), gate.open()).await;
    assert!(answers.iter().all(Result::is_ok), "a claim that is not granted is no error");
    assert_eq!(notes(&store).await, ["once"]);
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_the_others_intact() {
    let (_folder, store) = store().await;
    let claim = begun(&store, "k-1").await;
    let gate = Gate::shut(&store).await;
    let going = tokio::spawn({
        let store = store.clone();
        async move { Body::new(&[claim]).then_now(|conn| keep(&write_note(conn, "whole"))).transact(&store).await }
    });
    tokio::task::yield_now().await;
    going.abort();
    gate.open().await;
    complete(&store, "k-2").await.unwrap();
    let is_whole = status(&store, "k-1").await == Some(Status::Completed);
    assert_eq!(notes(&store).await.contains(&"whole".to_owned()), is_whole);
}

#[tokio::test]
async fn changes_of_one_call_miss_one_by_one() {
    let (_folder, store) = store().await;
    let (one, two) = (begun(&store, "k-1").await, begun(&store, "k-2").await);
    Body::new(std::slice::from_ref(&one)).then_now(|_| HandlerVerdict::Keep).transact(&store).await.unwrap();
    let applied = store.record(vec![completed(&one), completed(&two)]).await.unwrap();
    assert!(applied[0].is_err() && applied[1].is_ok(), "{applied:?}");
}
