//! The application's own tables, and sagas that are started with them.

use crate::support::{Error, complete, new_saga, notes, status, store, write_note};
use saga_core::store::{SagaFilter, Sagas as _, StartIn as _, Started, Status, StoreError, StoreErrorKind};

/// What a closure may fail with.
#[derive(Debug)]
enum Failed {
    Mine(&'static str),
    Store(StoreError),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

#[tokio::test]
async fn what_a_closure_refuses_is_rolled_back_and_comes_back_as_it_is() {
    let (_folder, store) = store().await;
    let answer: Result<(), Failed> = store
        .write(|conn| {
            write_note(conn, "undone").unwrap();
            Err(Failed::Mine("no"))
        })
        .await;
    assert!(matches!(answer, Err(Failed::Mine("no"))), "{answer:?}");
    assert_eq!(notes(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_closure_that_panics_ends_the_transaction_or_hangs_is_told_so() {
    let (_folder, store) = store().await;
    let kind = |answer: Result<(), Failed>| match answer {
        Err(Failed::Store(error)) => error.kind(),
        other => panic!("{other:?}"),
    };
    let panics = store.write(|_| -> Result<(), Failed> { panic!("fell over") }).await;
    assert_eq!(kind(panics), StoreErrorKind::Other);
    let ends = store.write(|conn| -> Result<(), Failed> {
        write_note(conn, "undone").unwrap();
        _ = conn.execute_batch("COMMIT");
        Ok(())
    });
    assert_eq!(kind(ends.await), StoreErrorKind::Misuse);
    assert_eq!(notes(&store).await, Vec::<String>::new());
    complete(&store, "k-1").await.unwrap();
}

/// The closure ignores the error of the statement that ended its transaction, so it does not know that its writes are gone.
#[tokio::test]
async fn a_transaction_that_sqlite_rolled_back_is_not_answered_as_written() {
    let (_folder, store) = store().await;
    let made = store.write(|conn| {
        conn.execute_batch(
            "CREATE TABLE seats (seat INTEGER UNIQUE ON CONFLICT ROLLBACK); INSERT INTO seats VALUES (1)",
        )
        .unwrap();
        Ok::<_, Error>(())
    });
    made.await.unwrap();
    // What is written behind it would be a transaction of its own, which the store refuses.
    for (goes_on, kind) in [(false, StoreErrorKind::Unavailable), (true, StoreErrorKind::Misuse)] {
        let answer = store.write(move |conn| -> Result<(), Failed> {
            write_note(conn, "before").unwrap();
            _ = conn.execute("INSERT INTO seats VALUES (1)", ());
            if goes_on {
                _ = write_note(conn, "behind");
            }
            Ok(())
        });
        let Err(Failed::Store(error)) = answer.await else { panic!("it is answered as written") };
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(notes(&store).await, Vec::<String>::new());
    }
    complete(&store, "k-1").await.unwrap();
}

#[tokio::test]
async fn a_read_that_panics_is_told_so_and_the_readers_go_on() {
    let (_folder, store) = store().await;
    for _ in 0..8 {
        let answer = store.read(|_| -> Result<(), Failed> { panic!("fell over") }).await;
        assert!(matches!(answer, Err(Failed::Store(_))), "{answer:?}");
    }
    let written = store.read(|conn| Ok::<_, Error>(conn.execute("DELETE FROM notes", ()).is_ok())).await.unwrap();
    assert!(!written, "a reader wrote");
}

#[tokio::test]
async fn a_saga_started_in_a_write_exists_if_and_only_if_that_commits() {
    let (_folder, store) = store().await;
    for (key, commits) in [("k-1", true), ("k-2", false)] {
        let saga = new_saga(&store, key).await;
        let inner = store.clone();
        let answer: Result<(), Failed> = store
            .write_async(async move |conn| {
                write_note(conn, key).unwrap();
                let started = inner.start_in(conn, saga.clone()).await?;
                assert!(matches!(started, Started::New));
                let again = inner.start_in(conn, saga.clone()).await?;
                assert!(matches!(again, Started::AlreadyExists(_)));
                if commits { Ok(()) } else { Err(Failed::Mine("no")) }
            })
            .await;
        assert_eq!(answer.is_ok(), commits);
        assert_eq!(status(&store, key).await, commits.then_some(Status::Running));
    }
    assert_eq!(notes(&store).await, ["k-1"]);
    let listed = store.list(&SagaFilter { limit: 10, ..SagaFilter::default() }).await.unwrap();
    assert_eq!(listed.len(), 1);
}

#[tokio::test]
async fn a_saga_is_started_on_a_connection_of_the_application() {
    let (_folder, store) = store().await;
    let mut conn = rusqlite::Connection::open(store.path()).unwrap();
    let saga = new_saga(&store, "k-1").await;
    let bare = store.start_in(&mut conn, saga.clone()).await.unwrap_err();
    assert_eq!(bare.kind(), StoreErrorKind::Misuse);
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(store.start_in(&mut conn, saga).await.unwrap(), Started::New));
    assert_eq!(status(&store, "k-1").await, None);
    conn.execute_batch("COMMIT").unwrap();
    assert_eq!(status(&store, "k-1").await, Some(Status::Running));
}

#[tokio::test]
async fn a_write_waits_for_a_connection_of_the_application_and_says_when_it_waited_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let options = saga_sqlite::SqliteOptions::new(folder.path().join("orders.db"))
        .busy_timeout(std::time::Duration::from_millis(20));
    let store = saga_sqlite::SqliteStore::open_with(options).await.unwrap();
    let conn = rusqlite::Connection::open(store.path()).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let saga = new_saga(&store, "k-1").await;
    let error = store.start(vec![saga.clone()]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
    assert_eq!(error.class(), saga_core::store::RetryClass::Transient);
    conn.execute_batch("ROLLBACK").unwrap();
    assert!(matches!(store.start(vec![saga]).await.unwrap()[..], [Started::New]));
}
