//! Opening a file, and what is said when it cannot be opened.

use std::path::Path;
use std::time::Duration;

use crate::support::{complete, new_saga, refused, store};
use rusqlite::Connection;
use saga_core::key::Tenant;
use saga_core::store::{Ids as _, RetryClass, SagaFilter, Sagas as _, Status, Store as _, StoreErrorKind};
use saga_sqlite::{SqliteOptions, SqliteStore, Synchronous};

async fn check_refused(path: &Path, kind: StoreErrorKind, says: &[&str]) {
    let error = refused(SqliteStore::open(path).await);
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    for part in says.iter().chain([&&*path.to_string_lossy()]) {
        assert!(text.contains(part), "{text:?} does not say {part:?}");
    }
    assert!(!text.contains('\n'), "{text}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.txt");
    std::fs::write(&path, "not a database, and long enough for SQLite to look at it\n".repeat(40)).unwrap();
    check_refused(&path, StoreErrorKind::NotAStore, &["not a SQLite database", "name another file"]).await;
}

#[tokio::test]
async fn a_folder_is_no_store() {
    let folder = tempfile::tempdir().unwrap();
    check_refused(folder.path(), StoreErrorKind::NotAStore, &["it is a folder"]).await;
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    check_refused(&file.join("orders.db"), StoreErrorKind::NotWritable, &["is not a folder", "name another path"])
        .await;
    let missing = folder.path().join("missing").join("orders.db");
    check_refused(&missing, StoreErrorKind::NotWritable, &["create it"]).await;
}

/// Nobody creates files in `/proc`, not even root, whom rights do not stop.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_folder_that_may_only_be_read_is_named() {
    check_refused(Path::new("/proc/orders.db"), StoreErrorKind::NotWritable, &["check the permissions of the folder"])
        .await;
}

#[cfg(unix)]
#[tokio::test]
async fn g6_what_goes_into_a_file_that_was_deleted_is_not_answered_as_durable() {
    let (folder, store) = store().await;
    complete(&store, "before").await.unwrap();
    let moved = folder.path().join("elsewhere.db");
    std::fs::rename(store.path(), &moved).unwrap();
    let error = refused(store.start(vec![new_saga(&store, "after").await]).await);
    assert_eq!((error.kind(), error.class()), (StoreErrorKind::NotWritable, RetryClass::Permanent), "{error}");
    assert!(error.to_string().contains("was deleted, moved or replaced"), "{error}");
    assert!(!store.path().exists(), "no other file takes its place");
    // Put back, it goes on.
    std::fs::rename(&moved, store.path()).unwrap();
    store.start(vec![new_saga(&store, "later").await]).await.unwrap();
}

#[tokio::test]
async fn a_clock_behind_the_newest_entry_is_told() {
    let (_folder, store) = store().await;
    complete(&store, "order-1").await.unwrap();
    assert_eq!(store.clock_behind(), None);
    let path = store.path().to_owned();
    store.close().await;
    let store = SqliteStore::open(&path).await.unwrap();
    assert_eq!(store.clock_behind(), None, "a moment passed");
    store.close().await;
    let day = 86_400_000_000_i64;
    let conn = Connection::open(&path).unwrap();
    conn.execute("UPDATE saga_sagas SET started_at = started_at + ?1", [400 * day]).unwrap();
    drop(conn);
    let store = SqliteStore::open(&path).await.unwrap();
    let behind = store.clock_behind().expect("it was set back by 400 days");
    assert!((Duration::from_hours(24 * 399)..=Duration::from_hours(24 * 400)).contains(&behind), "{behind:?}");
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_as_it_is() {
    let (_folder, store) = store().await;
    let path = store.path().to_owned();
    store.close().await;
    let conn = Connection::open(&path).unwrap();
    conn.execute("INSERT INTO saga_migrations (number, name, applied_at) VALUES (1000, 'later', 0)", ()).unwrap();
    drop(conn);
    check_refused(&path, StoreErrorKind::NewerSchema, &["schema 1000", "update this program"]).await;
    let error = refused(SqliteStore::read_only(&path).await);
    assert_eq!(error.kind(), StoreErrorKind::NewerSchema);
}

#[tokio::test]
async fn a_file_of_the_application_becomes_a_store_and_keeps_its_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL); INSERT INTO notes VALUES (1, 'mine')",
    )
    .unwrap();
    drop(conn);
    let error = refused(SqliteStore::read_only(&path).await);
    assert_eq!(error.kind(), StoreErrorKind::NotAStore);
    assert!(error.to_string().contains("holds no sagas"), "{error}");
    let store = SqliteStore::open(&path).await.unwrap();
    complete(&store, "k-1").await.unwrap();
    assert_eq!(crate::support::notes(&store).await, ["mine", "k-1"]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_second_store_in_one_process_is_refused_until_the_first_is_closed() {
    let (folder, store) = store().await;
    // Whatever path leads to it.
    let other = folder.path().join("link.db");
    std::os::unix::fs::symlink(store.path(), &other).unwrap();
    for path in [store.path(), &other] {
        let error = refused(SqliteStore::open(path).await);
        assert_eq!(error.kind(), StoreErrorKind::Misuse);
        assert!(error.to_string().contains("clone that store"), "{error}");
    }
    let clone = store.clone();
    complete(&clone, "k-1").await.unwrap();
    drop(store);
    complete(&clone, "k-2").await.unwrap();
    drop(clone);
    let store = SqliteStore::open(&other).await.unwrap();
    assert_eq!(crate::support::notes(&store).await, ["k-1", "k-2"]);
}

#[tokio::test]
async fn a_closed_store_says_so_and_its_file_is_free() {
    let (_folder, store) = store().await;
    complete(&store, "k-1").await.unwrap();
    store.close().await;
    store.close().await;
    let wal = store.path().with_extension("db-wal");
    assert!(wal.metadata().map_or(0, |found| found.len()) == 0, "the write-ahead log was not emptied");
    let error = refused(store.start(vec![]).await);
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("closed"), "{error}");
    assert!(store.list(&SagaFilter::default()).await.is_err());
    let again = SqliteStore::open(store.path()).await.unwrap();
    assert_eq!(crate::support::status(&again, "k-1").await, Some(Status::Completed));
}

#[tokio::test]
async fn ids_never_come_twice() {
    let (_folder, store) = store().await;
    let path = store.path().to_owned();
    let first = store.reserve_ids(10).await.unwrap();
    let second = store.reserve_ids(1).await.unwrap();
    assert!(first.start > 0 && second.start >= first.end);
    drop(store);
    let store = SqliteStore::open(&path).await.unwrap();
    assert!(store.reserve_ids(1).await.unwrap().start >= second.end);
}

#[tokio::test]
async fn a_reader_beside_the_owner_sees_what_is_committed_and_writes_nothing() {
    let (_folder, store) = store().await;
    complete(&store, "k-1").await.unwrap();
    let reader = SqliteStore::read_only(store.path()).await.unwrap();
    let listed = reader.list(&SagaFilter { limit: 10, ..SagaFilter::default() }).await.unwrap();
    assert_eq!(listed.len(), 1);
    complete(&store, "k-2").await.unwrap();
    assert_eq!(reader.count(&Tenant::default()).await.unwrap(), [(Status::Completed, 2)]);
    let saga = new_saga(&store, "k-3").await;
    let error = refused(reader.start(vec![saga]).await);
    assert_eq!(error.kind(), StoreErrorKind::NotWritable);
    assert!(error.to_string().contains("opened read only"), "{error}");
}

#[tokio::test]
async fn a_file_that_nobody_works_on_can_be_read() {
    let (_folder, store) = store().await;
    complete(&store, "k-1").await.unwrap();
    store.close().await;
    let reader = SqliteStore::read_only(store.path()).await.unwrap();
    assert_eq!(crate::support::status(&reader, "k-1").await, Some(Status::Completed));
    // Whoever only reads keeps nobody from working.
    let owner = SqliteStore::open(store.path()).await.unwrap();
    complete(&owner, "k-2").await.unwrap();
    assert_eq!(crate::support::status(&reader, "k-2").await, Some(Status::Completed));
    reader.close().await;
    assert!(reader.list(&SagaFilter::default()).await.is_err());
}

#[tokio::test]
async fn a_lock_that_somebody_holds_is_waited_for_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.db");
    // A lock of this process's own stands for another process: the system tells them apart by the open file.
    let lock = std::fs::File::create(folder.path().join("orders.db.lock")).unwrap();
    lock.lock().unwrap();
    std::fs::write(folder.path().join("orders.db.lock"), "4711").unwrap();
    let error = refused(SqliteStore::open_with(SqliteOptions::new(&path).wait_for_lock(Duration::ZERO)).await);
    assert_eq!((error.kind(), error.class()), (StoreErrorKind::Unavailable, RetryClass::Transient));
    let text = error.to_string();
    assert!(text.contains("process 4711 works on") && text.contains("end that process"), "{text}");
    assert!(!text.contains("within"), "it did not wait: {text}");

    // The process that has the file does not end, so the limit of the wait ends it.
    let (waits, waiting) = std::sync::mpsc::channel();
    let options = SqliteOptions::new(&path).on_wait(move |_| waits.send(()).unwrap());
    let error = refused(SqliteStore::open_with(options.wait_for_lock(Duration::from_millis(50))).await);
    assert_eq!(waiting.try_iter().count(), 1, "the wait is reported once");
    assert!(error.to_string().contains("process 4711 works on"), "{error}");
    assert!(
        error.to_string().contains("did not end within 50ms") && error.to_string().contains("wait_for_lock"),
        "{error}"
    );

    let (waits, waiting) = std::sync::mpsc::channel();
    let options = SqliteOptions::new(&path).on_wait(move |path| waits.send(path.to_owned()).unwrap());
    let opening = tokio::spawn(SqliteStore::open_with(options));
    let told = tokio::task::spawn_blocking(move || waiting.recv().unwrap()).await.unwrap();
    assert_eq!(told, path);
    assert!(!opening.is_finished());
    lock.unlock().unwrap();
    let store = opening.await.unwrap().unwrap();
    assert!(store.reserve_ids(1).await.is_ok());
}

#[tokio::test]
async fn whoever_stops_waiting_for_the_lock_does_not_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.db");
    let lock = std::fs::File::create(folder.path().join("orders.db.lock")).unwrap();
    lock.lock().unwrap();
    let (waits, waiting) = std::sync::mpsc::channel();
    let options = SqliteOptions::new(&path).on_wait(move |_| waits.send(()).unwrap());
    let opening = tokio::spawn(SqliteStore::open_with(options));
    tokio::task::spawn_blocking(move || waiting.recv().unwrap()).await.unwrap();
    opening.abort();
    assert!(opening.await.unwrap_err().is_cancelled());
    lock.unlock().unwrap();
    // The thread that waited gives its place in this process up, too.
    let store = loop {
        match SqliteStore::open(&path).await {
            Ok(store) => break store,
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Misuse, "{error}"),
        }
        tokio::task::yield_now().await;
    };
    assert!(store.reserve_ids(1).await.is_ok());
}

#[tokio::test]
async fn the_settings_are_those_that_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for (synchronous, setting) in [(Synchronous::Full, 2), (Synchronous::Normal, 1)] {
        let path = folder.path().join(format!("{setting}.db"));
        let store = SqliteStore::open_with(SqliteOptions::new(&path).synchronous(synchronous)).await.unwrap();
        let read = |conn: &mut Connection| -> Result<(i64, String, bool), crate::support::Error> {
            let get = |name: &str| {
                conn.query_row(&format!("PRAGMA {name}"), (), |row| row.get::<_, rusqlite::types::Value>(0))
            };
            let (
                rusqlite::types::Value::Integer(synchronous),
                rusqlite::types::Value::Text(mode),
                rusqlite::types::Value::Integer(keys),
            ) = (get("synchronous")?, get("journal_mode")?, get("foreign_keys")?)
            else {
                return Err("a setting of another kind".into());
            };
            Ok((synchronous, mode, keys == 1))
        };
        assert_eq!(store.write(read).await.unwrap(), (setting, "wal".to_owned(), true));
        let is_full = store.capabilities().durability == saga_core::store::Durability::Full;
        assert_eq!(is_full, synchronous == Synchronous::Full);
    }
}
