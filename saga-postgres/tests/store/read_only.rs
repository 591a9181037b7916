//! A store that is opened to look: it reads what is there, and changes nothing.

use crate::support::{Body, Notes as _, Place, begun, complete, new_saga};
use saga_core::store::{Hints as _, Members as _, SagaFilter, Sagas as _, StoreError, StoreErrorKind, Work as _};
use saga_postgres::{PostgresOptions, PostgresStore};
use sqlx::{AssertSqlSafe, Executor as _};

async fn refused(options: PostgresOptions) -> StoreError {
    let error = PostgresStore::connect_with(options.read_only()).await.expect_err("there is nothing to look at");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    error
}

async fn tables(place: &Place) -> i64 {
    let mut conn = place.connection().await;
    let count = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
    sqlx::query_scalar(count).fetch_one(&mut conn).await.unwrap()
}

#[tokio::test]
async fn it_reads_what_is_there_and_no_call_writes() {
    let place = Place::new().await;
    let store = place.open().await;
    complete(&store, "k-1").await.unwrap();
    let claim = begun(&store, "k-2").await;
    let saga = new_saga(&store, "k-3").await;
    // Each way in which connections are made and used.
    let shared = PostgresStore::from_pool(store.pool().clone(), place.options().read_only()).await.unwrap();
    let own = PostgresStore::connect_with(place.options().read_only()).await.unwrap();
    let bounced = PostgresStore::connect_with(place.options().read_only().pgbouncer()).await.unwrap();
    for looking in [&own, &bounced, &shared] {
        assert_eq!(looking.list(&SagaFilter { limit: 10, ..SagaFilter::default() }).await.unwrap().len(), 2);
        assert!(looking.saga_with_steps(&claim.tenant, &claim.key).await.unwrap().is_some());
        assert!(looking.listen().is_none(), "who only looks is told nothing");
        let not_writable = |error: &StoreError| assert_eq!(error.kind(), StoreErrorKind::NotWritable, "{error}");
        not_writable(&looking.start(vec![saga.clone()]).await.unwrap_err());
        not_writable(&looking.release_work(&[claim.work]).await.unwrap_err());
        not_writable(&looking.join(std::time::Duration::from_secs(1)).await.unwrap_err());
        let step = Body::new(std::slice::from_ref(&claim)).note("one").transact(looking).await;
        not_writable(&step.unwrap_err().error);
    }
    assert_eq!(place.notes().await, ["k-1"]);
    Body::new(&[claim]).note("k-2").transact(&store).await.unwrap();
    for store in [own, bounced, store] {
        store.close().await;
    }
    place.remove().await;
}

#[tokio::test]
async fn what_is_not_there_is_not_made() {
    let place = Place::new().await;
    let before = tables(&place).await;
    let error = refused(place.options()).await;
    assert_eq!(error.kind(), StoreErrorKind::NotAStore, "{error}");
    assert!(error.to_string().contains("there is no schema"), "{error}");
    assert_eq!(tables(&place).await, before);
    let nowhere = place.options().schema("nowhere").unwrap();
    assert_eq!(refused(nowhere).await.kind(), StoreErrorKind::NotAStore);
    place.remove().await;
}

#[tokio::test]
async fn a_schema_of_another_version_is_left_as_it_is() {
    let place = Place::new().await;
    place.open().await.close().await;
    let mut conn = place.connection().await;
    let newest = "SELECT max(number) FROM migrations";
    let newest: i32 = sqlx::query_scalar(newest).fetch_one(&mut conn).await.unwrap();
    conn.execute(AssertSqlSafe(format!("DELETE FROM migrations WHERE number = {newest}"))).await.unwrap();
    let older = refused(place.options()).await;
    assert_eq!(older.kind(), StoreErrorKind::NotWritable);
    let sentence = format!("is at migration {}, and this version reads {newest}; open it once", newest - 1);
    assert!(older.to_string().contains(&sentence), "{older}");
    conn.execute(AssertSqlSafe(format!("INSERT INTO migrations VALUES ({newest}, 'steps'), (999, 'later')")))
        .await
        .unwrap();
    let newer = refused(place.options()).await;
    assert_eq!(newer.kind(), StoreErrorKind::NewerSchema, "{newer}");
    place.remove().await;
}
