//! Step transactions whose handlers write notes.

use std::sync::Arc;

use saga_core::store::{HandlerVerdict, TransactError};
use saga_postgres::PostgresStore;
pub use saga_testkit::step_body::keep;
use sqlx::PgConnection;
use tokio::sync::Notify;

use super::begun;

/// A body on a connection to PostgreSQL.
pub type Body = saga_testkit::step_body::Body<PgConnection>;

/// Where a handler and a test meet: the handler says that it is here, and waits to be let on.
#[derive(Debug, Default)]
pub struct Meeting {
    pub entered: Notify,
    pub go_on: Notify,
}

/// Handlers that write notes.
pub trait Notes {
    /// The next claim's handler writes a note, and keeps it.
    fn note(self, text: &'static str) -> Self;

    /// The next claim's handler writes a note, and waits for the test.
    fn note_and_meet(self, text: &'static str, meeting: &Arc<Meeting>) -> Self;

    /// The next claim's handler sends this, and goes on whatever comes of it.
    fn sends(self, sql: &'static str) -> Self;
}

impl Notes for Body {
    fn note(self, text: &'static str) -> Self {
        self.then(move |conn| Box::pin(async move { keep(&write_note(conn, text).await) }))
    }

    fn note_and_meet(self, text: &'static str, meeting: &Arc<Meeting>) -> Self {
        let meeting = Arc::clone(meeting);
        self.then(move |conn| {
            let meeting = Arc::clone(&meeting);
            Box::pin(async move {
                let written = write_note(conn, text).await;
                meeting.entered.notify_one();
                meeting.go_on.notified().await;
                keep(&written)
            })
        })
    }

    fn sends(self, sql: &'static str) -> Self {
        self.then(move |conn| {
            Box::pin(async move {
                _ = sqlx::raw_sql(sql).execute(conn).await;
                HandlerVerdict::Keep
            })
        })
    }
}

/// Completes the saga of this key in a step transaction that writes a note of the same text.
pub async fn complete(store: &PostgresStore, key: &'static str) -> Result<(), TransactError> {
    let claim = begun(store, key).await;
    Body::new(&[claim]).note(key).transact(store).await
}

pub async fn write_note(conn: &mut PgConnection, text: &str) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO notes (text) VALUES ($1)").bind(text).execute(conn).await.map(drop)
}
