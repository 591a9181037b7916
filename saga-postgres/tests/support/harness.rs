//! The places on the server at which the suite of all stores checks this one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use saga_core::store::Store as _;
use saga_postgres::PostgresStore;
use saga_testkit::{Fault, Provokes, StartInHarness, StoreHarness};
use sqlx::{Connection as _, Executor as _, PgConnection};

use super::server::{Place, address};

/// An edit of a function of the schema: its name, a text in it, and what takes the place of this text.
pub type Edit = (&'static str, &'static str, &'static str);

/// Places on the server, one for each check.
#[derive(Default)]
pub struct Postgres {
    places: Mutex<HashMap<String, Place>>,
    edits: &'static [Edit],
}

impl Postgres {
    pub fn new() -> Self {
        // Without a server there is nothing to check, and that is a failure.
        _ = address();
        Self::default()
    }

    /// Plants bugs in each place.
    pub fn spoilt(edits: &'static [Edit]) -> Self {
        Self { edits, ..Self::new() }
    }

    fn place(&self, store: &PostgresStore) -> Place {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places[store.schema()].clone()
    }
}

impl StoreHarness for Postgres {
    type Store = PostgresStore;

    async fn fresh(&self) -> PostgresStore {
        let place = Place::new().await;
        let store = place.open().await;
        for (function, text, by) in self.edits {
            place.spoil(function, text, by).await;
        }
        assert!(store.capabilities().shared, "many processes work on one database");
        self.places.lock().unwrap_or_else(PoisonError::into_inner).insert(place.schema.clone(), place);
        store
    }

    async fn reopen(&self, store: PostgresStore) -> PostgresStore {
        let place = self.place(&store);
        store.close().await;
        place.open().await
    }

    async fn beside(&self, store: &PostgresStore) -> Option<PostgresStore> {
        Some(self.place(store).open().await)
    }

    async fn write_business(&self, conn: &mut PgConnection, name: &str, value: i64) -> Result<(), Fault> {
        let upsert = "INSERT INTO business (name, value) VALUES ($1, $2) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        sqlx::query(upsert).bind(name).bind(value).execute(conn).await?;
        Ok(())
    }

    async fn read_business(&self, store: &PostgresStore, name: &str) -> Option<i64> {
        let read = sqlx::query_scalar("SELECT value FROM business WHERE name = $1").bind(name);
        read.fetch_optional(store.pool()).await.expect("the business table can be read")
    }

    fn provokes(&self) -> Provokes {
        Provokes { ended_transaction: true, unknown_commit: true, hours: false }
    }

    async fn end_transaction(&self, conn: &mut PgConnection) {
        // It is refused, and found out all the same.
        _ = conn.execute("COMMIT").await;
    }

    async fn fail_statement(&self, conn: &mut PgConnection) -> Fault {
        let refused = conn.execute("INSERT INTO business (name, value) VALUES ('bad', NULL)").await;
        refused.expect_err("the column holds no NULL").into()
    }

    fn doubtful(&self, store: &PostgresStore, commits: bool) -> Option<PostgresStore> {
        Some(store.with_lost_commit(commits))
    }
}

impl StartInHarness for Postgres {
    type Transaction = PgConnection;

    async fn begin(&self, store: &PostgresStore) -> PgConnection {
        let mut conn = self.bare(store).await;
        conn.execute("BEGIN").await.expect("a transaction can be opened");
        conn
    }

    async fn bare(&self, store: &PostgresStore) -> PgConnection {
        self.place(store).connection().await
    }

    fn conn<'a>(&self, transaction: &'a mut PgConnection) -> &'a mut PgConnection {
        transaction
    }

    async fn commit(&self, mut transaction: PgConnection) -> Result<(), Fault> {
        transaction.execute("COMMIT").await?;
        Ok(transaction.close().await?)
    }

    async fn roll_back(&self, mut transaction: PgConnection) {
        transaction.execute("ROLLBACK").await.expect("the transaction is open");
    }
}
