//! Tables that a version of this crate made whose resources had no version yet.

use saga_reservations::{ReservationsClient, Reserve, SqlReservations};
use saga_sql::{SqlConn as _, SqlStore as _};
use saga_sqlite::SqliteStore;

const OLDER: &str = "ALTER TABLE reservation_resources DROP COLUMN version";

#[tokio::test]
async fn a_sqlite_file_of_an_earlier_version_is_used_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("reservations.db")).await.unwrap();
    reserve(SqlReservations::on_sqlite(store.clone()).await.unwrap(), "before").await;
    let older = store.transaction(async |conn| -> anyhow::Result<()> { Ok(conn.execute_batch(OLDER).await?) });
    older.await.unwrap();
    reserve(SqlReservations::on_sqlite(store).await.unwrap(), "after").await;
}

#[tokio::test]
async fn a_postgres_database_of_an_earlier_version_is_used_on() {
    let database = saga_servers::shared::database("reservations").await.unwrap();
    reserve(SqlReservations::connect_postgres(database.url()).await.unwrap(), "before").await;
    let rows = sqlx::PgPool::connect(database.url()).await.unwrap();
    sqlx::query(OLDER).execute(&rows).await.unwrap();
    reserve(SqlReservations::connect_postgres(database.url()).await.unwrap(), "after").await;
}

/// What was reserved before counts, and one unit more is taken.
async fn reserve(reservations: SqlReservations, key: &str) {
    let client = ReservationsClient::new(reservations);
    client.set_capacity("seat", 2).await.unwrap();
    client.reserve(Reserve::of("seat", 1).key(key)).await.unwrap().confirm().await.unwrap();
    let full = client.reserve(Reserve::of("seat", 2).key("too-many")).await;
    assert!(full.is_err(), "one seat is confirmed");
}
