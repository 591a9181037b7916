//! Steps that leave their transaction so that nothing can be recorded in it: they are to blame, and nobody waits for them.

use std::time::Duration;

use crate::support::{Body, Notes as _, Place, begun};
use saga_core::engine::ComponentHealth;
use saga_core::store::{RetryClass, StoreErrorKind};
use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

/// A test that hangs ends.
const TIME_MAX: Duration = Duration::from_mins(2);
/// More than there are workers.
const SPOILERS: usize = 10;

/// Sends what it is told to.
#[saga_step(no_compensation, retry(attempts = 2, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn spoil(tx: &mut PgConnection, sql: String) -> Result<(), StepError> {
    tx.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await?;
    Ok(())
}

/// Leaks a transaction that it nested.
#[saga_step(no_compensation, retry(attempts = 2, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn leak(tx: &mut PgConnection, _sql: String) -> Result<(), StepError> {
    std::mem::forget(tx.begin().await?);
    Ok(())
}

#[saga_step(no_compensation)]
async fn write(tx: &mut PgConnection, note: String) -> Result<(), StepError> {
    crate::support::write_note(tx, &note).await?;
    Ok(())
}

/// What becomes of ten sagas of a step that sends this; others go on meanwhile.
async fn outcomes_of(place: &Place, spoiling: &Saga<PostgresStore, String>, sql: &str) -> Vec<String> {
    let good = Saga::named("good").input::<String>().step::<write>().build().unwrap();
    let runtime = Runtime::builder(place.open().await).saga(spoiling).saga(&good).start().await.unwrap();
    let all = async {
        let asked = (0..SPOILERS).map(|number| (format!("bad-{number}"), sql.to_owned()));
        let bad = runtime.start_many(spoiling, asked).await;
        let good = runtime.start(&good, "good", "good".to_owned()).await.unwrap();
        assert!(matches!(good.outcome().await.unwrap(), Outcome::Completed { .. }));
        let mut outcomes = Vec::new();
        for running in bad {
            outcomes.push(running.unwrap().outcome().await.unwrap().to_string());
        }
        outcomes
    };
    let outcomes = tokio::time::timeout(TIME_MAX, all).await.expect("the workers stand still");
    assert_eq!(runtime.health().store, ComponentHealth::Healthy, "the store is not to blame");
    runtime.shutdown().await;
    assert_eq!(place.notes().await, ["good"]);
    outcomes
}

fn spoiling() -> Saga<PostgresStore, String> {
    Saga::named("spoiling").input::<String>().step::<spoil>().build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_a_step_that_makes_its_transaction_read_only_is_blamed() {
    let place = Place::new().await;
    for outcome in outcomes_of(&place, &spoiling(), "SET TRANSACTION READ ONLY").await {
        assert!(outcome.contains("left its transaction unwritable"), "{outcome}");
    }
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_a_step_that_keeps_a_role_without_rights_is_blamed() {
    let place = Place::new().await;
    let role = format!("{}_tenant", place.schema);
    let mut conn = place.connection().await;
    conn.execute(sqlx::raw_sql(AssertSqlSafe(format!("CREATE ROLE {role}")))).await.unwrap();
    for outcome in outcomes_of(&place, &spoiling(), &format!("SET LOCAL ROLE {role}")).await {
        assert!(outcome.contains("left its transaction unwritable"), "{outcome}");
    }
    conn.execute(sqlx::raw_sql(AssertSqlSafe(format!("DROP ROLE {role}")))).await.unwrap();
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_a_deferred_trigger_that_refuses_the_commit_is_blamed_on_its_step() {
    for state in ["42501", "XX000", "25006"] {
        let place = Place::new().await;
        let mut conn = place.connection().await;
        let trigger = format!(
            "CREATE TABLE refused (id bigint); \
             CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'not this one' USING ERRCODE = '{state}'; END $$; \
             CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON refused DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION refuse()"
        );
        conn.execute(sqlx::raw_sql(AssertSqlSafe(trigger))).await.unwrap();
        for outcome in outcomes_of(&place, &spoiling(), "INSERT INTO refused VALUES (1)").await {
            assert!(outcome.contains("not this one"), "{state}: {outcome}");
        }
        place.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_a_step_that_leaks_a_nested_transaction_is_stuck_and_nothing_else() {
    let place = Place::new().await;
    let leaking = Saga::named("leaking").input::<String>().step::<leak>().build().unwrap();
    for outcome in outcomes_of(&place, &leaking, "").await {
        assert!(outcome.starts_with("stuck at `leak`: step ended its transaction, or left one open"), "{outcome}");
    }
    place.remove().await;
}

/// Nobody's handler ran: the server is read-only, as behind a switchover.
#[tokio::test]
async fn a_server_that_became_read_only_blames_nobody() {
    let place = Place::new().await;
    let store = place.open().await;
    let claim = begun(&store, "k-1").await;
    let mut conn = place.connection().await;
    // A begin that says READ WRITE is refused by a standby; here the rights are missing, which is found out by the claim.
    let role = format!("{}_reader", place.schema);
    let create = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'reads'; GRANT USAGE ON SCHEMA {0} TO {role}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA {0} TO {role}",
        place.schema
    );
    conn.execute(sqlx::raw_sql(AssertSqlSafe(create))).await.unwrap();
    let reader = saga_postgres::PostgresOptions::new(place.connect.clone().username(&role).password("reads"))
        .schema(&place.schema)
        .unwrap();
    let reader = PostgresStore::connect_with(reader).await.unwrap();
    let error = Body::new(&[claim]).note("never").transact(&reader).await.unwrap_err();
    assert_eq!((error.culprit, error.error.kind()), (None, StoreErrorKind::NotWritable), "{error:?}");
    assert_eq!(error.error.class(), RetryClass::Permanent);
    reader.close().await;
    store.close().await;
    let drop = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    conn.execute(sqlx::raw_sql(AssertSqlSafe(drop))).await.unwrap();
    place.remove().await;
}
