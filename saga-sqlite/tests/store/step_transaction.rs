//! The step transaction on SQLite: what handlers may do to each other, to their connection and to the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::{Body, Error, Gate, begun, complete, keep, notes, refused, status, store, write_note};
use rusqlite::hooks::{AuthContext, Authorization};
use saga_core::store::{HandlerVerdict, RetryClass, Status, StoreErrorKind};

/// A statement that runs for hours.
const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000000) \
    SELECT count(*) FROM n";

#[tokio::test]
async fn g1_writes_record_and_progress_commit_together() {
    let (_folder, store) = store().await;
    complete(&store, "k-1").await.unwrap();
    assert_eq!(notes(&store).await, ["k-1"]);
    assert_eq!(status(&store, "k-1").await, Some(Status::Completed));
}

#[tokio::test]
async fn a_handler_that_is_rolled_back_takes_nobody_with_it() {
    let (_folder, store) = store().await;
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await, begun(&store, "k-3").await];
    Body::new(&claims)
        .then_now(|conn| keep(&write_note(conn, "one")))
        .then_now(|conn| {
            write_note(conn, "two").unwrap();
            HandlerVerdict::RollBack
        })
        .then_now(|conn| keep(&write_note(conn, "three")))
        .transact(&store)
        .await
        .unwrap();
    assert_eq!(notes(&store).await, ["one", "three"]);
    assert_eq!(status(&store, "k-2").await, Some(Status::Running));
}

#[tokio::test]
async fn a_handler_that_ends_the_transaction_is_found_out() {
    let of_job = ["RELEASE saga_job", "ROLLBACK TO saga_job", "ROLLBACK TO Saga_Job"];
    for ending in ["COMMIT", "END", "ROLLBACK", "COMMIT; BEGIN IMMEDIATE"].into_iter().chain(of_job) {
        let (_folder, store) = store().await;
        let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
        let error = Body::new(&claims)
            .then_now(|conn| keep(&write_note(conn, "one")))
            .then_now(move |conn| {
                write_note(conn, "two").unwrap();
                // The handler does not even look whether it worked.
                _ = conn.execute_batch(ending);
                HandlerVerdict::Keep
            })
            .transact(&store)
            .await
            .unwrap_err();
        assert!(error.ended_transaction, "{ending}: {error}");
        assert_eq!(error.culprit, Some(1), "{ending}");
        assert_eq!(notes(&store).await, Vec::<String>::new(), "{ending}");
        assert_eq!(status(&store, "k-1").await, Some(Status::Running), "{ending}");
        complete(&store, "k-3").await.unwrap();
    }
}

#[tokio::test]
async fn a_commit_that_got_past_the_authorizer_is_refused_by_the_commit_hook() {
    let (_folder, store) = store().await;
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    let neighbour = Body::new(&claims[..1]).then_now(|conn| keep(&write_note(conn, "neighbour")));
    let culprit = Body::new(&claims[1..]).then_now(|conn| {
        write_note(conn, "undone").unwrap();
        conn.authorizer(None::<fn(AuthContext<'_>) -> Authorization>).unwrap();
        assert!(conn.execute_batch("COMMIT").is_err());
        HandlerVerdict::Keep
    });
    let gate = Gate::shut(&store).await;
    let (neighbour, culprit, ()) = tokio::join!(neighbour.transact(&store), culprit.transact(&store), gate.open());
    neighbour.unwrap();
    let error = culprit.unwrap_err();
    assert_eq!((error.culprit, error.ended_transaction), (Some(0), true), "{error}");
    assert_eq!(notes(&store).await, ["neighbour"]);
    // The connection that was tampered with is not used again.
    let claim = begun(&store, "k-3").await;
    Body::new(&[claim])
        .then_now(|conn| {
            assert!(conn.execute_batch("COMMIT").unwrap_err().to_string().contains("not authorized"));
            HandlerVerdict::RollBack
        })
        .transact(&store)
        .await
        .unwrap_err();
}

#[tokio::test]
async fn a_nested_begin_fails_as_it_always_does_and_harms_nobody() {
    let (_folder, store) = store().await;
    let claim = begun(&store, "k-1").await;
    Body::new(&[claim])
        .then_now(|conn| {
            assert!(conn.transaction().unwrap_err().to_string().contains("within a transaction"));
            keep(&write_note(conn, "kept"))
        })
        .transact(&store)
        .await
        .unwrap();
    assert_eq!(notes(&store).await, ["kept"]);
}

#[tokio::test]
async fn savepoints_of_a_handler_are_its_own_affair() {
    let (_folder, store) = store().await;
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    Body::new(&claims)
        .then_now(|conn| {
            let savepoint = conn.savepoint().unwrap();
            write_note(&savepoint, "undone").unwrap();
            drop(savepoint);
            let savepoint = conn.savepoint().unwrap();
            write_note(&savepoint, "kept").unwrap();
            savepoint.commit().unwrap();
            HandlerVerdict::Keep
        })
        .then_now(|conn| {
            // Left open: it ends with the handler's own.
            keep(&conn.execute_batch("SAVEPOINT mine; INSERT INTO notes (text) VALUES ('in an open savepoint')"))
        })
        .transact(&store)
        .await
        .unwrap();
    assert_eq!(notes(&store).await, ["kept", "in an open savepoint"]);
}

#[tokio::test]
async fn what_changes_the_connection_is_refused() {
    let (_folder, store) = store().await;
    let claim = begun(&store, "k-1").await;
    Body::new(&[claim])
        .then_now(|conn| {
            for sql in ["PRAGMA query_only = ON", "PRAGMA cache_size = 1", "ATTACH ':memory:' AS other"] {
                let error = conn.execute_batch(sql).unwrap_err();
                assert!(error.to_string().contains("not authorized"), "{sql}: {error}");
            }
            let columns: i64 =
                conn.query_row("SELECT count(*) FROM pragma_table_info('notes')", (), |row| row.get(0)).unwrap();
            assert_eq!(columns, 2);
            keep(&write_note(conn, "kept"))
        })
        .transact(&store)
        .await
        .unwrap();
    assert_eq!(notes(&store).await, ["kept"]);
}

#[tokio::test]
async fn a_statement_past_the_time_limit_is_interrupted() {
    let (_folder, store) = store().await;
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    Body::new(&claims[..1])
        // Long enough that the first statement is not interrupted.
        .limit(Duration::from_secs(1))
        .then_now(|conn| {
            write_note(conn, "undone").unwrap();
            let error = conn.query_row(ENDLESS, (), |row| row.get::<_, i64>(0)).unwrap_err();
            assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::OperationInterrupted));
            HandlerVerdict::RollBack
        })
        .transact(&store)
        .await
        .unwrap();
    // An interrupted write takes the whole transaction with it, and the handler is to blame.
    let error = Body::new(&claims[1..])
        .limit(Duration::from_millis(50))
        .then_now(|conn| {
            _ = conn.execute(&format!("INSERT INTO notes (text) {ENDLESS}"), ());
            HandlerVerdict::Keep
        })
        .transact(&store)
        .await
        .unwrap_err();
    assert_eq!((error.culprit, error.ended_transaction), (Some(0), false), "{error}");
    assert_eq!(error.error.class(), RetryClass::Transient);
    assert_eq!(notes(&store).await, Vec::<String>::new());
    complete(&store, "k-3").await.unwrap();
}

#[tokio::test]
async fn a_future_that_hangs_is_dropped_behind_its_time_limit() {
    let (_folder, store) = store().await;
    let claim = begun(&store, "k-1").await;
    let error = Body::new(&[claim])
        .limit(Duration::from_secs(1))
        .then(|conn| {
            Box::pin(async move {
                write_note(conn, "undone").unwrap();
                std::future::pending().await
            })
        })
        .transact(&store)
        .await
        .unwrap_err();
    assert_eq!(error.culprit, Some(0), "{error}");
    assert_eq!(error.error.class(), RetryClass::Transient);
    assert_eq!(notes(&store).await, Vec::<String>::new());
    complete(&store, "k-2").await.unwrap();
}

#[tokio::test]
async fn a_handler_may_wait_for_timers_and_tasks_of_its_runtime() {
    let (_folder, store) = store().await;
    let claim = begun(&store, "k-1").await;
    Body::new(&[claim])
        .then(|conn| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let text = tokio::spawn(async { "waited" }).await.unwrap();
                keep(&write_note(conn, text))
            })
        })
        .transact(&store)
        .await
        .unwrap();
    assert_eq!(notes(&store).await, ["waited"]);
}

#[tokio::test]
async fn g10_a_body_that_panics_fails_alone_and_the_writer_goes_on() {
    let (_folder, store) = store().await;
    let claim = begun(&store, "k-1").await;
    let error = Body::new(&[claim])
        .then_now(|conn| {
            write_note(conn, "undone").unwrap();
            panic!("the handler fell over")
        })
        .transact(&store)
        .await
        .unwrap_err();
    assert_eq!(error.culprit, Some(0));
    assert!(error.to_string().contains("the handler fell over"), "{error}");
    complete(&store, "k-2").await.unwrap();
    assert_eq!(notes(&store).await, ["k-2"]);
}

#[tokio::test]
async fn a_handler_that_calls_the_store_is_refused_instead_of_waiting_for_itself() {
    let (_folder, store) = store().await;
    let claim = begun(&store, "k-1").await;
    let inner = store.clone();
    Body::new(&[claim])
        .then(move |conn| {
            let store = inner.clone();
            Box::pin(async move {
                let error = refused(saga_core::store::Ids::reserve_ids(&store, u32::MAX).await);
                assert_eq!(error.kind(), StoreErrorKind::Misuse, "{error}");
                keep(&write_note(conn, "kept"))
            })
        })
        .transact(&store)
        .await
        .unwrap();
    assert_eq!(notes(&store).await, ["kept"]);
}

#[tokio::test]
async fn a_deferred_constraint_is_the_fault_of_the_handler_that_broke_it() {
    let (_folder, store) = store().await;
    let create = "CREATE TABLE parents (id INTEGER PRIMARY KEY) STRICT;
        CREATE TABLE children (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED) STRICT;";
    store.write(move |conn| -> Result<(), Error> { Ok(conn.execute_batch(create)?) }).await.unwrap();
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    let orphan = Body::new(&claims[..1]).then_now(|conn| keep(&conn.execute("INSERT INTO children VALUES (1)", ())));
    let innocent = Body::new(&claims[1..]).then_now(|conn| keep(&write_note(conn, "kept")));
    let gate = Gate::shut(&store).await;
    let (orphan, innocent, ()) = tokio::join!(orphan.transact(&store), innocent.transact(&store), gate.open());
    innocent.unwrap();
    let error = orphan.unwrap_err();
    assert_eq!((error.culprit, error.error.class()), (Some(0), RetryClass::Permanent), "{error}");
    assert_eq!(notes(&store).await, ["kept"]);
    assert_eq!(status(&store, "k-1").await, Some(Status::Running));
}

/// Without a savepoint there is nothing that one call could be taken back to: its group is rolled back with it. What was
/// not its fault runs again.
#[tokio::test]
async fn what_fails_without_a_savepoint_fails_alone() {
    let (_folder, store) = store().await;
    let savepoints = store.statistics().savepoints;
    let claim = begun(&store, "k-1").await;
    Body::new(&[claim]).then_now(|conn| keep(&write_note(conn, "k-1"))).spared().transact(&store).await.unwrap();
    assert_eq!(store.statistics().savepoints, savepoints, "who needs none has none");

    for verdict in [HandlerVerdict::RollBack, HandlerVerdict::Conflict, HandlerVerdict::Abandon] {
        let key = format!("{verdict:?}");
        let claims = [begun(&store, &format!("{key}-1")).await, begun(&store, &format!("{key}-2")).await];
        let neighbour = Body::new(&claims[..1]).then_now(|conn| keep(&write_note(conn, "neighbour")));
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let failing = Body::new(&claims[1..]).spared().then_now(move |conn| {
            counted.fetch_add(1, Ordering::Relaxed);
            write_note(conn, "undone").unwrap();
            verdict
        });
        let gate = Gate::shut(&store).await;
        let (neighbour, failing, ()) = tokio::join!(neighbour.transact(&store), failing.transact(&store), gate.open());
        neighbour.unwrap();
        let error = failing.unwrap_err();
        let (kind, culprit) = match verdict {
            HandlerVerdict::Abandon => (StoreErrorKind::Other, Some(0)),
            _ => (StoreErrorKind::Conflict, None),
        };
        assert_eq!((error.error.kind(), error.culprit), (kind, culprit), "{error:?}");
        assert_eq!(runs.load(Ordering::Relaxed), 1, "who is asked decides whether it runs again");
    }
    assert_eq!(notes(&store).await, ["k-1", "neighbour", "neighbour", "neighbour"]);
}

/// Several handlers share a savepoint, or have none, as they are told: a rollback takes back what lies behind the last one.
#[tokio::test]
async fn savepoints_are_set_where_they_are_needed() {
    let (_folder, store) = store().await;
    for (needed, kept) in [([true, true, true], "ab"), ([true, false, false], ""), ([false, true, false], "a")] {
        let savepoints = store.statistics().savepoints;
        let key = format!("{needed:?}").replace([' ', '[', ']'], "");
        let mut claims = Vec::new();
        for claim in ["a", "b", "c"] {
            claims.push(begun(&store, &format!("{key}-{claim}")).await);
        }
        let before = notes(&store).await.len();
        let body = Body::new(&claims)
            .then_now(|conn| keep(&write_note(conn, "a")))
            .then_now(|conn| keep(&write_note(conn, "b")))
            .then_now(|conn| {
                write_note(conn, "c").unwrap();
                HandlerVerdict::RollBack
            });
        body.needs(needed).transact(&store).await.unwrap();
        assert_eq!(notes(&store).await[before..].concat(), kept, "{needed:?}");
        let set = needed.iter().filter(|needed| **needed).count() as u64;
        assert_eq!(store.statistics().savepoints - savepoints, set, "{needed:?}");
    }
}
