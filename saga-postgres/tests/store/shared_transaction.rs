//! Steps that are right by themselves, and are in each other's way where they share a transaction.

use std::time::Duration;

use crate::support::Place;
use saga_core::step::StepResultExt as _;
use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use sqlx::{Connection as _, Executor as _, PgConnection};

/// A temporary table until the commit: one transaction can have it once, so it should have said `group = false`.
#[saga_step(no_compensation, retry(attempts = 2, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn sort_orders(tx: &mut PgConnection, _order: i64) -> Result<(), StepError> {
    tx.execute("CREATE TEMPORARY TABLE sorted (id bigint) ON COMMIT DROP").await?;
    Ok(())
}

/// It calls every error of its statement a rejection.
#[saga_step(no_compensation)]
async fn count_order(tx: &mut PgConnection, _order: i64) -> Result<(), StepError> {
    tx.execute("UPDATE counts SET orders = orders + 1").await.or_reject()?;
    Ok(())
}

async fn completed(place: &Place, saga: &Saga<PostgresStore, i64>, count: i64) -> usize {
    let runtime = Runtime::builder(place.open().await).saga(saga).start().await.unwrap();
    let orders = (0..count).map(|order| (format!("order-{order}"), order));
    let mut completed = 0;
    for started in runtime.start_many(saga, orders).await {
        let outcome = started.unwrap().outcome().await.unwrap();
        completed += usize::from(matches!(outcome, Outcome::Completed { .. }));
    }
    runtime.shutdown().await;
    completed
}

#[tokio::test]
async fn a_step_that_fails_only_in_company_is_done_alone() {
    let place = Place::new().await;
    let saga = Saga::named("sorting").input::<i64>().step::<sort_orders>().build().unwrap();
    assert_eq!(completed(&place, &saga, 200).await, 200, "of 200");
    place.remove().await;
}

#[tokio::test]
async fn a_lock_that_another_holds_is_no_rejection() {
    let place = Place::new().await;
    let mut holder = place.connection().await;
    let table = "CREATE TABLE counts (orders bigint NOT NULL); INSERT INTO counts VALUES (0)";
    holder.execute(sqlx::raw_sql(table)).await.unwrap();
    let mut held = holder.begin().await.unwrap();
    held.execute("UPDATE counts SET orders = 0").await.unwrap();
    let saga = Saga::named("counting").input::<i64>().step::<count_order>().build().unwrap();
    // Long enough that a batch gives up waiting for the row several times.
    let release = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        held.commit().await.unwrap();
    };
    let (count, ()) = tokio::join!(completed(&place, &saga, 20), release);
    assert_eq!(count, 20, "of 20");
    drop(holder);
    place.remove().await;
}
