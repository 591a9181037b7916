//! Two transactions that publish under one ordering key: the lock on its counter makes positions commit order (G9).

use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{Headers, MessageId, MessageKind, NewMessage, Outbox as _, StartIn as _, lane_of};
use saga_postgres::PostgresStore;
use saga_postgres::fault_injection::Mutant;
use sqlx::{Connection as _, Executor as _};

use crate::support::{Place, blocker_of, member};

fn message(number: u8) -> NewMessage {
    let tenant = Tenant::default();
    NewMessage {
        id: MessageId(uuid::Uuid::from_u128(number.into())),
        lane: lane_of(&tenant, "stock", "7"),
        tenant,
        aggregate_type: "stock".into(),
        aggregate_id: "7".into(),
        event_type: "StockCounted".into(),
        kind: MessageKind::Event,
        payload: vec![number],
        position: 0,
        headers: Headers::default(),
        due_in: Duration::ZERO,
    }
}

/// The messages of the key in the order in which a relay sends them.
async fn order(store: &PostgresStore) -> Vec<u8> {
    let lanes = store.lease_lanes(member(store, Duration::from_hours(1)).await, 64).await.unwrap();
    let rows = store.read_lane(lanes[0], 64).await.unwrap();
    rows.iter().map(|row| row.payload[0]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g9_a_second_publisher_of_a_key_waits_for_the_commit_of_the_first() {
    let place = Place::new().await;
    let store = place.open().await;
    let mut first = place.connection().await;
    first.execute("BEGIN").await.unwrap();
    store.publish_in(&mut first, message(1)).await.unwrap();
    let mut second = place.connection().await;
    second.execute("BEGIN").await.unwrap();
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut second).await.unwrap();
    let publishing = tokio::spawn({
        let store = store.clone();
        async move {
            store.publish_in(&mut second, message(2)).await.unwrap();
            second.execute("COMMIT").await.unwrap();
            second.close().await.unwrap();
        }
    });
    // It stands behind the first one, and not only later than it.
    let blocker = blocker_of(&mut place.connection().await, pid).await;
    let of_first: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut first).await.unwrap();
    assert_eq!(blocker, of_first);
    assert!(!publishing.is_finished());
    first.execute("COMMIT").await.unwrap();
    publishing.await.unwrap();
    assert_eq!(order(&store).await, [1, 2]);
    first.close().await.unwrap();
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn without_the_counter_what_committed_last_is_sent_first() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(place.options().mutant(Mutant::CountsWithoutLock)).await.unwrap();
    let (mut first, mut second) = (place.connection().await, place.connection().await);
    first.execute("BEGIN").await.unwrap();
    store.publish_in(&mut first, message(1)).await.unwrap();
    second.execute("BEGIN").await.unwrap();
    store.publish_in(&mut second, message(2)).await.unwrap();
    second.execute("COMMIT").await.unwrap();
    first.execute("COMMIT").await.unwrap();
    assert_eq!(order(&store).await, [1, 2], "2 was committed before 1");
    first.close().await.unwrap();
    second.close().await.unwrap();
    store.close().await;
    place.remove().await;
}
