//! A failover to a standby that lagged behind: what was committed last is gone, and this process remembers it.

use std::fs;
use std::time::Duration;

use crate::support::new_saga;
use saga_core::key::{Key, Tenant};
use saga_core::store::{DefinitionId, Ids as _, NewSaga, Sagas as _};
use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use saga_servers::PostgresServer;
use sqlx::{Connection as _, Executor as _, PgConnection};

/// A server that can begin another timeline by itself.
async fn server() -> PostgresServer {
    PostgresServer::start_with(&[("restore_command", "false")]).await.unwrap()
}

/// The server goes on as a standby does that is promoted: on another timeline. All connections break.
async fn fail_over(server: &mut PostgresServer) {
    server.stop().await.unwrap();
    fs::write(server.data_folder().join("recovery.signal"), "").unwrap();
    server.restart().await.unwrap();
}

async fn opened(server: &PostgresServer) -> PostgresStore {
    PostgresStore::connect(&server.url()).await.unwrap()
}

/// Whatever is idle is broken, which the next call finds out.
async fn reconnected(store: &PostgresStore) {
    while store.orphaned(1).await.is_err() {}
}

#[tokio::test]
async fn ids_are_given_once_though_the_sequence_went_back() {
    let mut server = server().await;
    let before = opened(&server).await;
    let old = before.reserve_ids(10).await.unwrap();
    assert_eq!(old.start, 1, "the first timeline has the numbers of the sequence");
    fail_over(&mut server).await;
    let mut conn = PgConnection::connect(&server.url()).await.unwrap();
    reconnected(&before).await;
    // That the sequence was ever used is lost.
    conn.execute("SELECT setval('saga.ids', 1, false)").await.unwrap();
    let behind = opened(&server).await;
    let (new, more) = (behind.reserve_ids(10).await.unwrap(), before.reserve_ids(10).await.unwrap());
    assert_eq!(more.start, old.end, "the other process still has its block");
    assert!(new.start >= more.end || new.end <= more.start, "{new:?} and {more:?}");
    // Its next block is of the new timeline as well.
    let larger = before.reserve_ids(1 << 21).await.unwrap();
    assert!(larger.start >= new.end, "{larger:?} behind {new:?}");
    before.close().await;
    behind.close().await;
}

#[tokio::test]
async fn a_definition_whose_number_was_lost_is_numbered_again() {
    let mut server = server().await;
    let before = opened(&server).await;
    before.start(vec![new_saga(&before, "k-1").await]).await.unwrap();
    fail_over(&mut server).await;
    let mut conn = PgConnection::connect(&server.url()).await.unwrap();
    let lost = "DELETE FROM saga.work; DELETE FROM saga.progress; DELETE FROM saga.sagas; DELETE FROM saga.definitions; \
         SELECT setval(pg_get_serial_sequence('saga.definitions', 'id'), 1, false)";
    conn.execute(sqlx::raw_sql(lost)).await.unwrap();
    // Another definition gets the number that this process remembers.
    let behind = opened(&server).await;
    let other = DefinitionId { name: "other".into(), version: 1 };
    let mut saga = NewSaga { definition: other.clone(), ..new_saga(&behind, "k-2").await };
    saga.commands[0].definition = other;
    behind.start(vec![saga]).await.unwrap();
    reconnected(&before).await;
    before.start(vec![new_saga(&before, "k-3").await]).await.unwrap();
    let row = behind.saga(&Tenant::default(), &Key::new("k-3").unwrap()).await.unwrap().unwrap();
    assert_eq!(row.definition, crate::support::definition());
    before.close().await;
    behind.close().await;
}

/// Slow enough that the server changes its role while many of them wait, and nothing is tried twice.
#[saga_step(no_compensation, retry(attempts = 1, base = "1ms"), on_exhausted = "compensate")]
async fn count_order(tx: &mut PgConnection, _order: u32) -> Result<(), StepError> {
    tx.execute("SELECT pg_sleep(0.1)").await?;
    Ok(())
}

/// After a switchover a pool may reach the old primary, which is a standby now: its `BEGIN .. READ WRITE` is refused with
/// 0A000. No step is to blame for that, and the process goes on when the server can be written again.
#[tokio::test]
async fn a_standby_uses_up_no_attempt() {
    let mut server = server().await;
    let counting = Saga::named("counting").input::<u32>().step::<count_order>().build().unwrap();
    let runtime = Runtime::builder(opened(&server).await).saga(&counting).start().await.unwrap();
    let orders = (0..300_u32).map(|order| (format!("order-{order}"), order));
    let sagas = runtime.start_many(&counting, orders).await;
    server.stop().await.unwrap();
    fs::write(server.data_folder().join("standby.signal"), "").unwrap();
    server.restart().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut conn = PgConnection::connect(&server.url()).await.unwrap();
    let ended: i64 = sqlx::query_scalar("SELECT count(*) FROM saga.progress WHERE ended_at IS NOT NULL")
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert!(ended < 300, "some are left to be done");
    let refused = conn.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await.unwrap_err();
    let code = refused.as_database_error().and_then(sqlx::error::DatabaseError::code);
    assert_eq!(code.as_deref(), Some("0A000"), "{refused}");
    conn.execute("SELECT pg_promote()").await.unwrap();
    for saga in sagas {
        let outcome = saga.unwrap().outcome().await.unwrap();
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    }
    runtime.shutdown().await;
}
