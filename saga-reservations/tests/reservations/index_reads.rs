//! What PostgreSQL reads of its indexes.

use std::time::Duration;

use saga_reservations::{ReservationsStore as _, SqlReservations};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

/// How many holds are there in each of two states. None of them is over.
const ROWS: i64 = 3_000;

/// How many rows of `reservations` and entries of its indexes were read.
async fn reads(pool: &PgPool) -> i64 {
    sqlx::query("SELECT pg_stat_force_next_flush()").execute(pool).await.unwrap();
    let sql = "SELECT (seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'reservations'))::bigint
        FROM pg_stat_user_tables WHERE relname = 'reservations'";
    sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
}

/// A bound that PostgreSQL reckons anew for each row is no bound of an index.
#[tokio::test]
async fn a_sweep_reads_only_what_is_over() {
    let database = saga_servers::shared::database("reservations").await.unwrap();
    // One connection, which tells the server at once what it has read.
    let pool = PgPoolOptions::new().max_connections(1).connect(database.url()).await.unwrap();
    let store = SqlReservations::on_postgres(pool.clone()).await.unwrap();
    let insert = "INSERT INTO reservations
        SELECT state || number, '[]', false, state, 1, 1, time + 3600000000, time
        FROM generate_series(1, $1) AS number, unnest(ARRAY['held', 'released']) AS state,
            LATERAL (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS clock (time)";
    sqlx::query(insert).bind(ROWS).execute(&pool).await.unwrap();
    for statistics in ["SELECT 1", "ANALYZE reservations"] {
        sqlx::query(statistics).execute(&pool).await.unwrap();
        let before = reads(&pool).await;
        assert_eq!(store.expire_overdue(64).await.unwrap(), 0);
        let swept = reads(&pool).await;
        assert_eq!(store.prune(Duration::from_hours(24), 64).await.unwrap(), 0);
        let pruned = reads(&pool).await;
        assert!(swept - before < 100 && pruned - swept < 100, "{statistics}: {before}, {swept}, {pruned}");
    }
}
