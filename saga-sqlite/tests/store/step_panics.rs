//! Panics of steps on the thread that writes: each is an attempt of its own saga, and the writer goes on.

use std::fmt;

use rusqlite::Connection;
use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
use saga_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};

type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Trick {
    Never,
    /// When the call is dropped at its time limit.
    PanicsWhenDropped,
    /// When its error is turned into text.
    PanicsInDisplay,
    /// When its error is dropped.
    PanicsWithError,
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "the bomb went off");
    }
}

#[derive(Debug)]
struct Nasty(Trick);

impl fmt::Display for Nasty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert_ne!(self.0, Trick::PanicsInDisplay, "no text");
        f.write_str("nasty")
    }
}

impl std::error::Error for Nasty {}

impl Drop for Nasty {
    fn drop(&mut self) {
        assert!(self.0 != Trick::PanicsWithError || std::thread::panicking(), "not to be dropped");
    }
}

#[saga_step(
    no_compensation,
    timeout = "50ms",
    // A busy machine may take the time of one attempt, and not of all.
    retry(attempts = 5, base = "1ms", cap = "1ms"),
    on_exhausted = "compensate"
)]
async fn write(tx: &mut Connection, trick: Trick) -> Result<(), StepError> {
    tx.execute("INSERT INTO notes DEFAULT VALUES", ())?;
    match trick {
        Trick::Never => Ok(()),
        Trick::PanicsWhenDropped => {
            let _bomb = Bomb;
            std::future::pending().await
        }
        Trick::PanicsInDisplay | Trick::PanicsWithError => Err(StepError::retry(Nasty(trick))),
    }
}

#[tokio::test]
async fn g10_a_panic_of_a_step_leaves_the_writer_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("notes.db")).await.unwrap();
    let create = |conn: &mut Connection| -> Result<(), Error> {
        Ok(conn.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY) STRICT")?)
    };
    store.write(create).await.unwrap();
    let saga = Saga::named("note").input::<Trick>().step::<write>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&saga).start().await.unwrap();
    // More of them than there are workers.
    for number in 0..10 {
        for trick in [Trick::PanicsWhenDropped, Trick::PanicsInDisplay, Trick::PanicsWithError, Trick::Never] {
            runtime.start(&saga, format!("{trick:?}-{number}"), trick).await.unwrap();
        }
    }
    for number in 0..10 {
        for trick in [Trick::PanicsWhenDropped, Trick::PanicsInDisplay, Trick::PanicsWithError, Trick::Never] {
            let outcome = runtime.attach(format!("{trick:?}-{number}")).await.unwrap().outcome().await.unwrap();
            assert_eq!(matches!(outcome, Outcome::Completed { .. }), trick == Trick::Never, "{trick:?}: {outcome}");
        }
    }
    let count = |conn: &mut Connection| -> Result<i64, Error> {
        Ok(conn.query_row("SELECT count(*) FROM notes", (), |row| row.get(0))?)
    };
    assert_eq!(store.write(count).await.unwrap(), 10, "nothing is left of what panicked");
    assert_eq!(runtime.health().panicked, []);
    runtime.shutdown().await;
}
