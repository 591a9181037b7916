//! A second process on a SQLite file: it warns, and ends with an error instead of waiting for ever.

use std::fs::File;
use std::time::Duration;

use saga_core::store::StoreErrorKind;
use saga_sqlite::{SqliteOptions, SqliteStore};
use saga_tests::{Warnings, within};

/// The only test of this program that sets the subscriber of all threads: the thread that opens the file warns.
#[tokio::test]
async fn a_second_process_on_a_sqlite_file_warns_and_is_refused_in_the_end() {
    let warnings = Warnings::default();
    tracing::subscriber::set_global_default(warnings.clone()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    // A lock of this process stands for the other process, whose id is in the file.
    let lock = File::create(folder.path().join("shop.db.lock")).unwrap();
    lock.lock().unwrap();
    std::fs::write(folder.path().join("shop.db.lock"), "4711").unwrap();

    let options = SqliteOptions::new(&path).wait_for_lock(Duration::from_millis(30));
    let error = within(SqliteStore::open_with(options)).await.expect_err("another process works on the file");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("process 4711 works on"), "{error}");

    let of_file = format!("path={} ", path.display());
    let said = warnings.of(&of_file);
    let [warning] = &said[..] else { panic!("one warning, not {said:?}") };
    for part in ["message=waiting for the file lock ", "process=4711 ", "limit=30ms "] {
        assert!(warning.contains(part), "no {part:?} in {warning:?}");
    }

    lock.unlock().unwrap();
    let store = within(SqliteStore::open(&path)).await.unwrap();
    store.close().await;
    assert_eq!(warnings.of(&of_file).len(), 1, "a free file is not waited for");
}
