//! The step transaction on PostgreSQL: what handlers may do to each other, to their connection and to the server.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{
    Body, Meeting, Notes as _, Place, begun, complete, definition, keep, member, new_saga, status, write_note,
};
use saga_core::store::{
    ClaimRequest, HandlerVerdict, RetryClass, StartIn as _, Started, Status, Store as _, StoreErrorKind, Work as _,
};
use saga_postgres::PostgresStore;
use sqlx::{Connection as _, Executor as _, Row as _};

#[tokio::test]
async fn g1_writes_record_and_progress_commit_together() {
    let place = Place::new().await;
    let store = place.open().await;
    complete(&store, "k-1").await.unwrap();
    assert_eq!(place.notes().await, ["k-1"]);
    assert_eq!(status(&store, "k-1").await, Some(Status::Completed));
    assert_eq!((store.statistics().transactions, store.statistics().commands), (1, 1));
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn a_rejection_alone_is_recorded_by_the_commit_that_undid_it() {
    let place = Place::new().await;
    let store = place.open().await;
    let claim = begun(&store, "k-1").await;
    let changes = crate::support::completed(&claim);
    let body = Body::new(std::slice::from_ref(&claim)).besides(changes).then(|conn| {
        Box::pin(async move {
            write_note(conn, "undone").await.unwrap();
            conn.execute("SELECT 1 / 0").await.unwrap_err();
            HandlerVerdict::RollBack
        })
    });
    body.transact(&store).await.unwrap();
    assert_eq!(place.notes().await, Vec::<String>::new());
    assert_eq!(status(&store, "k-1").await, Some(Status::Completed));
    store.close().await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g10_an_abandoned_handler_costs_its_connection() {
    let place = Place::new().await;
    let store = place.open().await;
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    let (tell, told) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    let error = Body::new(&claims)
        .note("one")
        .then(move |conn| {
            let tell = tell.take();
            Box::pin(async move {
                let pid: i32 = conn.fetch_one("SELECT pg_backend_pid()").await.unwrap().get(0);
                _ = tell.map(|tell| tell.send(pid));
                // A statement is under way when the handler is dropped.
                let endless = tokio::time::timeout(Duration::from_millis(20), conn.execute("SELECT pg_sleep(3600)"));
                endless.await.unwrap_err();
                HandlerVerdict::Abandon
            })
        })
        .transact(&store)
        .await
        .unwrap_err();
    assert_eq!((error.culprit, error.ended_transaction), (Some(1), false), "{error:?}");
    assert_eq!(error.error.class(), RetryClass::Transient);
    assert_eq!(store.statistics().connections_closed, 1);
    // The server notices that its client is gone, ends the statement and gives the locks back.
    let backend = told.await.unwrap();
    let mut conn = place.connection().await;
    let lives = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1)";
    let gone = async {
        while sqlx::query_scalar::<_, bool>(lives).bind(backend).fetch_one(&mut conn).await.unwrap() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the server still runs the abandoned statement");
    assert_eq!(place.notes().await, Vec::<String>::new());
    Body::new(&claims).note("one").note("two").transact(&store).await.unwrap();
    assert_eq!(place.notes().await, ["one", "two"]);
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn g10_a_handler_that_panics_fails_alone() {
    let place = Place::new().await;
    let store = place.open().await;
    let claim = begun(&store, "k-1").await;
    let body = Body::new(&[claim]).then(|_| panic!("fell over"));
    let error = body.transact(&store).await.unwrap_err();
    assert_eq!((error.culprit, error.error.class()), (Some(0), RetryClass::Transient), "{error:?}");
    complete(&store, "k-2").await.unwrap();
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn whoever_keeps_quiet_about_a_failed_statement_is_to_blame() {
    let place = Place::new().await;
    let store = place.open().await;
    for culprit in 0..3 {
        let claims = [
            begun(&store, &format!("a-{culprit}")).await,
            begun(&store, &format!("b-{culprit}")).await,
            begun(&store, &format!("c-{culprit}")).await,
        ];
        let mut body = Body::new(&claims);
        for index in 0..3 {
            body = if index == culprit { body.sends("SELECT 1 / 0") } else { body.note("undone") };
        }
        let error = body.transact(&store).await.unwrap_err();
        assert_eq!((error.culprit, error.ended_transaction), (Some(culprit), false), "{error:?}");
        assert_eq!(error.error.kind(), StoreErrorKind::Other);
    }
    assert_eq!(place.notes().await, Vec::<String>::new());
    assert_eq!(store.statistics().connections_closed, 0, "the connection is sound");
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn what_the_commit_refuses_is_definite_and_blamed_only_on_who_is_alone() {
    let place = Place::new().await;
    let store = place.open().await;
    let mut conn = place.connection().await;
    let deferred = "CREATE TABLE parents (id bigint PRIMARY KEY); \
         CREATE TABLE children (parent bigint REFERENCES parents DEFERRABLE INITIALLY DEFERRED)";
    conn.execute(deferred).await.unwrap();
    let orphan = "INSERT INTO children VALUES (1)";
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    let error = Body::new(&claims).note("one").sends(orphan).transact(&store).await.unwrap_err();
    assert_eq!((error.culprit, error.error.kind()), (None, StoreErrorKind::Other), "{error:?}");
    assert_eq!(error.error.class(), RetryClass::Permanent, "the server answered: nothing is in doubt");
    let error = Body::new(&claims[1..]).sends(orphan).transact(&store).await.unwrap_err();
    assert_eq!(error.culprit, Some(0), "{error:?}");
    assert_eq!(place.notes().await, Vec::<String>::new());
    // Constraints that are named may be looked at earlier.
    let named = "INSERT INTO parents VALUES (1); INSERT INTO children VALUES (1); SET CONSTRAINTS children_parent_fkey IMMEDIATE";
    Body::new(&claims).note("one").sends(named).transact(&store).await.unwrap();
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn a_nested_transaction_is_a_savepoint() {
    let place = Place::new().await;
    let store = place.open().await;
    let claim = begun(&store, "k-1").await;
    let body = Body::new(&[claim]).then(|conn| {
        Box::pin(async move {
            let mut dropped = conn.begin().await.unwrap();
            write_note(&mut dropped, "undone").await.unwrap();
            drop(dropped);
            let mut nested = conn.begin().await.unwrap();
            write_note(&mut nested, "kept").await.unwrap();
            keep(&nested.commit().await)
        })
    });
    body.transact(&store).await.unwrap();
    assert_eq!(place.notes().await, ["kept"]);
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn the_server_ends_what_a_stopped_process_holds() {
    let place = Place::new().await;
    let store = place.open().await;
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    let set = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&set);
    let body = Body::new(&claims).limit(Duration::from_secs(7)).note("one").then(move |conn| {
        let seen = Arc::clone(&seen);
        Box::pin(async move {
            for name in [
                "idle_in_transaction_session_timeout",
                "statement_timeout",
                "lock_timeout",
                "transaction_isolation",
                "enable_seqscan",
            ] {
                let show = "SELECT current_setting($1)";
                let value: String = sqlx::query_scalar(show).bind(name).fetch_one(&mut *conn).await.unwrap();
                seen.lock().unwrap().push(value);
            }
            HandlerVerdict::Keep
        })
    });
    body.transact(&store).await.unwrap();
    // The handler's limit and some grace; a batch waits for locks only shortly; plans are the user's own affair.
    assert_eq!(*set.lock().unwrap(), ["12s", "12s", "50ms", "read committed", "on"]);
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn a_lock_that_somebody_else_holds_makes_a_batch_give_way() {
    let place = Place::new().await;
    let store = place.open().await;
    let mut conn = place.connection().await;
    conn.execute("INSERT INTO business VALUES ('hot', 1)").await.unwrap();
    let mut holder = conn.begin().await.unwrap();
    holder.execute("UPDATE business SET value = 2 WHERE name = 'hot'").await.unwrap();
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    let asked = store.clone();
    let body = Body::new(&claims).note("one").then(move |conn| {
        let asked = asked.clone();
        Box::pin(async move {
            let error = conn.execute("UPDATE business SET value = 3 WHERE name = 'hot'").await.unwrap_err();
            assert!(asked.is_conflict(&error), "{error}");
            assert!(!asked.is_conflict(&sqlx::Error::RowNotFound));
            HandlerVerdict::Conflict
        })
    });
    let error = body.transact(&store).await.unwrap_err();
    assert_eq!((error.culprit, error.error.kind()), (None, StoreErrorKind::Conflict), "{error:?}");
    holder.rollback().await.unwrap();
    assert_eq!(place.notes().await, Vec::<String>::new());
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn one_connection_is_enough() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(place.options().connections_max(1)).await.unwrap();
    let claim = begun(&store, "k-1").await;
    let next = new_saga(&store, "k-2").await;
    let inner = store.clone();
    let body = Body::new(&[claim]).then(move |conn| {
        let (inner, next) = (inner.clone(), next.clone());
        Box::pin(async move {
            // Inside a step, a saga is started on the step's own connection.
            let started = inner.start_in(conn, next).await.unwrap();
            assert!(matches!(started, Started::New));
            keep(&write_note(conn, "one").await)
        })
    });
    tokio::time::timeout(Duration::from_secs(20), body.transact(&store)).await.expect("it waits for itself").unwrap();
    assert_eq!(status(&store, "k-2").await, Some(Status::Running));
    let lease = member(&store, Duration::from_mins(1)).await;
    let request = ClaimRequest { lease, limit: 10, definitions: [definition()].into(), takes_over: true };
    assert_eq!(store.claim(request).await.unwrap().work.len(), 1);
    assert_eq!(store.statistics().connections, 1);
    store.close().await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_whose_caller_went_away_ends_all_the_same() {
    let place = Place::new().await;
    let store = place.open().await;
    let claim = begun(&store, "k-1").await;
    let meeting = Arc::new(Meeting::default());
    let body = Body::new(&[claim]).note_and_meet("one", &meeting);
    let calling = tokio::spawn({
        let store = store.clone();
        async move { body.transact(&store).await }
    });
    meeting.entered.notified().await;
    calling.abort();
    assert!(calling.await.unwrap_err().is_cancelled());
    meeting.go_on.notify_one();
    while status(&store, "k-1").await != Some(Status::Completed) {
        tokio::task::yield_now().await;
    }
    assert_eq!(place.notes().await, ["one"]);
    store.close().await;
    place.remove().await;
}
