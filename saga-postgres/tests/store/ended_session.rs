//! Sessions that the server ends.

use std::time::Duration;

use crate::support::Place;
use saga_core::store::{Members as _, StoreErrorKind};
use saga_postgres::PostgresStore;
use sqlx::{AssertSqlSafe, Executor as _};

const TTL: Duration = Duration::from_mins(1);

#[tokio::test]
async fn the_call_after_the_one_whose_session_was_ended_has_a_session_of_its_own() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(place.options().connections_max(1)).await.unwrap();
    let member = store.join(TTL).await.unwrap().member;
    let mut conn = place.connection().await;
    let run = |sql: &str| sqlx::raw_sql(AssertSqlSafe(sql.replace("{schema}", &place.schema)));
    let kill = "CREATE FUNCTION {schema}.kill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             PERFORM pg_terminate_backend(pg_backend_pid()); RETURN OLD; END $$; \
         CREATE TRIGGER kill BEFORE DELETE ON {schema}.members FOR EACH ROW EXECUTE FUNCTION {schema}.kill()";
    conn.execute(run(kill)).await.unwrap();
    let error = store.leave(member).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::UnknownCommit, "{error}");
    conn.execute(run("DROP TRIGGER kill ON {schema}.members")).await.unwrap();
    store.leave(member).await.unwrap();
    store.close().await;
    place.remove().await;
}
