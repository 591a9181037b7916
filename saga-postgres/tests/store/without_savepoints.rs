//! Handlers run without savepoints where none is needed; what goes wrong among them is taken back all the same, and told of
//! the one whose fault it is.

use std::sync::{Arc, Mutex};

use crate::support::{Body, Notes as _, Place, begun, status};
use saga_core::store::{Claim, HandlerVerdict, Status, StoreErrorKind};
use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use saga_postgres::fault_injection::Mutant;
use sqlx::{Executor as _, PgConnection};

/// A store, and two claims.
async fn two(place: &Place) -> (PostgresStore, [Claim; 2]) {
    let store = place.open().await;
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    (store, claims)
}

#[tokio::test]
async fn handlers_that_need_none_run_without_savepoints() {
    let place = Place::new().await;
    // It is known by name here, to be looked for.
    let options = place.options().mutant(Mutant::FixedSavepointName);
    let store = PostgresStore::connect_with(options).await.unwrap();
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    let has_savepoint = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&has_savepoint);
    let error = Body::new(&claims)
        .note("one")
        .then(move |conn| {
            let seen = Arc::clone(&seen);
            Box::pin(async move {
                let found = conn.execute("ROLLBACK TO SAVEPOINT saga_handler").await.is_ok();
                seen.lock().unwrap().push(found);
                HandlerVerdict::RollBack
            })
        })
        .spared()
        .transact(&store)
        .await
        .unwrap_err();
    assert_eq!(*has_savepoint.lock().unwrap(), [false]);
    assert_eq!((error.error.kind(), error.culprit), (StoreErrorKind::Conflict, None), "nothing else can be taken back");
    assert_eq!((place.notes().await.len(), store.statistics().without_savepoint), (0, 0));
    Body::new(&claims).note("one").note("two").spared().transact(&store).await.unwrap();
    assert_eq!((place.notes().await.len(), store.statistics().without_savepoint), (2, 1));
    store.close().await;
    place.remove().await;
}

/// Without the session being read-only outside the transaction, the second handler's write would be there by itself.
#[tokio::test]
async fn g1_behind_a_spared_handler_that_ends_the_transaction_nothing_is_written() {
    for ending in ["COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN"] {
        let place = Place::new().await;
        let (store, claims) = two(&place).await;
        Body::new(&claims).sends(ending).note("two").spared().transact(&store).await.unwrap_err();
        assert_eq!(place.notes().await.len(), 0, "{ending}");
        for key in ["k-1", "k-2"] {
            assert_eq!(status(&store, key).await, Some(Status::Running), "{ending}");
        }
        // Its connections write as before.
        crate::support::complete(&store, "k-3").await.unwrap();
        assert_eq!(place.notes().await, ["k-3"], "{ending}");
        store.close().await;
        place.remove().await;
    }
}

#[tokio::test]
async fn a_connection_that_ran_the_spared_writes_outside_transactions_again() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(place.options().connections_max(1)).await.unwrap();
    let claims = [begun(&store, "k-1").await, begun(&store, "k-2").await];
    Body::new(&claims).note("one").note("two").spared().transact(&store).await.unwrap();
    // A start is a statement that commits by itself.
    begun(&store, "k-3").await;
    assert_eq!(status(&store, "k-3").await, Some(Status::Running));
    store.close().await;
    place.remove().await;
}

/// Orders with trouble of their own.
const FAILS: i64 = 1_001;
const KEEPS_QUIET: i64 = 1_003;
const ENDS: i64 = 1_005;
/// The same, and none of its neighbours sends anything that would find it out.
const ENDS_IN_SILENCE: i64 = 2_001;

#[saga_step(no_compensation, retry(attempts = 2, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn reserve(tx: &mut PgConnection, order: i64) -> Result<(), StepError> {
    if order < 2_000 {
        crate::support::write_note(tx, "reserved").await?;
    }
    match order {
        FAILS => tx.execute("SELECT 1 / 0").await.map(drop)?,
        KEEPS_QUIET => _ = tx.execute("SELECT 1 / 0").await,
        ENDS | ENDS_IN_SILENCE => _ = tx.execute("ROLLBACK").await,
        _ => {}
    }
    Ok(())
}

/// Nothing has failed for a long time, so the step has no savepoints. Whoever fails then, keeps quiet about it, or ends the
/// transaction of all, is found out, and the others have each written once.
#[tokio::test]
async fn who_is_to_blame_among_the_spared_is_found_out() {
    let place = Place::new().await;
    let saga: Saga<PostgresStore, i64> = Saga::named("order").input::<i64>().step::<reserve>().build().unwrap();
    let builder = Runtime::builder(place.open().await).saga(&saga);
    let runtime = builder.settings(|settings| settings.transactions_max = 1).start().await.unwrap();
    let sell = async |orders: std::ops::Range<i64>| {
        let asked = orders.clone().map(|order| (format!("order-{order}"), order));
        let mut outcomes = Vec::new();
        for running in runtime.start_many(&saga, asked).await {
            outcomes.push(running.unwrap().outcome().await.unwrap());
        }
        orders.zip(outcomes).collect::<Vec<_>>()
    };
    for first in (0..1_000).step_by(50) {
        _ = sell(first..first + 50).await;
    }
    let spared = runtime.store().statistics().without_savepoint;
    assert!(spared > 0, "the later of them had no savepoints");
    let mut sold = sell(1_000..1_010).await;
    sold.extend(sell(2_000..2_004).await);
    for (order, outcome) in sold {
        let is_expected = match order {
            FAILS | KEEPS_QUIET => matches!(outcome, Outcome::Compensated { .. }),
            ENDS | ENDS_IN_SILENCE => matches!(outcome, Outcome::Stuck { .. }),
            _ => matches!(outcome, Outcome::Completed { .. }),
        };
        assert!(is_expected, "order {order}: {outcome:?}");
    }
    assert_eq!(place.notes().await.len(), 1_007);
    runtime.shutdown().await;
    place.remove().await;
}
