//! Two relays and one ordering key: a lane is one relay's at a time (G9).

use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{
    Changes, Headers, Lease, Members as _, MessageId, MessageKind, NewMessage, Outbox as _, Records as _, lane_of,
};
use saga_postgres::PostgresStore;
use saga_postgres::fault_injection::Mutant;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::support::{Place, member};

fn message(position: u64) -> NewMessage {
    let tenant = Tenant::default();
    NewMessage {
        id: MessageId(uuid::Uuid::from_u128(u128::from(position))),
        lane: lane_of(&tenant, "order", "7"),
        tenant,
        aggregate_type: "order".into(),
        aggregate_id: "7".into(),
        event_type: "OrderPlaced".into(),
        kind: MessageKind::Event,
        payload: b"{}".to_vec(),
        position,
        headers: Headers::default(),
        due_in: Duration::ZERO,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g9_a_second_relay_gets_nothing_of_a_key_until_the_first_has_lost_its_lane() {
    let place = Place::new().await;
    let (one, other) = (place.open().await, place.open().await);
    let messages = (1..=6).map(message).collect();
    one.record(vec![Changes { messages, ..Changes::default() }]).await.unwrap();
    let lease = member(&one, Duration::from_hours(1)).await;
    let second = member(&other, Duration::from_hours(1)).await;
    // Both ask at the same moment, many times over.
    let (mine, theirs) = tokio::join!(one.lease_lanes(lease, 64), other.lease_lanes(second, 64));
    let (mine, theirs) = (mine.unwrap(), theirs.unwrap());
    assert_eq!(mine.len() + theirs.len(), 1, "{mine:?} {theirs:?}");
    let (first, its_lease, its_lane, rival, rival_lease) =
        if mine.is_empty() { (&other, second, theirs[0], &one, lease) } else { (&one, lease, mine[0], &other, second) };
    let positions = |rows: Vec<saga_core::store::OutboxRow>| rows.iter().map(|row| row.position).collect::<Vec<_>>();
    assert_eq!(positions(first.read_lane(its_lane, 3).await.unwrap()), [1, 2, 3]);
    assert_eq!(rival.lease_lanes(rival_lease, 64).await.unwrap(), []);
    first.sent(&[message(1).id]).await.unwrap();
    // The first one dies with 2 and 3 unconfirmed. The next begins where the confirmed ones end.
    first.leave(its_lease.owner).await.unwrap();
    let taken = rival.lease_lanes(rival_lease, 64).await.unwrap();
    assert_eq!((taken.len(), taken[0].epoch), (1, its_lane.epoch + 1));
    assert_eq!(positions(rival.read_lane(taken[0], 64).await.unwrap()), [2, 3, 4, 5, 6]);
    // Whoever lost its lane reads nothing more, and cannot take it back by renewing.
    assert_eq!(first.read_lane(its_lane, 64).await.unwrap(), []);
    let renewed = first.renew_lanes(&[its_lane], Lease { ttl: Duration::from_secs(9), ..its_lease }).await.unwrap();
    assert_eq!(renewed, [false]);
    one.close().await;
    other.close().await;
    place.remove().await;
}

#[tokio::test]
async fn without_the_lease_on_a_lane_two_relays_send_the_same() {
    let place = Place::new().await;
    let options = || place.options().mutant(Mutant::IgnoresLaneOwner);
    let (one, other) =
        (PostgresStore::connect_with(options()).await.unwrap(), PostgresStore::connect_with(options()).await.unwrap());
    let messages = (1..=2).map(message).collect();
    one.record(vec![Changes { messages, ..Changes::default() }]).await.unwrap();
    let mut sent = Vec::new();
    for store in [&one, &other] {
        let lanes = store.lease_lanes(member(store, Duration::from_hours(1)).await, 64).await.unwrap();
        assert_eq!(lanes.len(), 1);
        sent.extend(store.read_lane(lanes[0], 64).await.unwrap().iter().map(|row| row.position));
    }
    assert_eq!(sent, [1, 2, 1, 2], "both have them in hand at once");
    one.close().await;
    other.close().await;
    place.remove().await;
}

/// Lets each look of a relay at the outbox wait, in the middle of its statement, for the advisory lock 4711.
const SLOW_LOOK: &str = "ALTER TABLE parked RENAME TO parked_rows; \
     CREATE FUNCTION slow_look() RETURNS SETOF parked_rows LANGUAGE plpgsql AS $$ \
     BEGIN PERFORM pg_advisory_lock_shared(4711); PERFORM pg_advisory_unlock_shared(4711); END $$; \
     CREATE VIEW parked AS SELECT * FROM parked_rows UNION ALL SELECT * FROM slow_look()";

/// A statement does not see a process that joined after it began, and must not take its lane for that of a dead one (G9).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g9_a_relay_does_not_take_the_lane_of_a_process_that_joined_while_it_looked() {
    let place = Place::new().await;
    let (slow, new) = (place.open().await, place.open().await);
    slow.record(vec![Changes { messages: vec![message(1)], ..Changes::default() }]).await.unwrap();
    let its_lease = member(&slow, Duration::from_hours(1)).await;
    let mut conn = place.connection().await;
    conn.execute(sqlx::raw_sql(SLOW_LOOK)).await.unwrap();
    conn.execute("SELECT pg_advisory_lock(4711)").await.unwrap();
    let looking = tokio::spawn({
        let slow = slow.clone();
        async move { slow.lease_lanes(its_lease, 64).await }
    });
    let waits = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    while !sqlx::query_scalar::<_, bool>(waits).fetch_one(&mut conn).await.unwrap() {
        tokio::task::yield_now().await;
    }
    let owner = member(&new, Duration::from_hours(1)).await.owner.0;
    let lease = format!(
        "UPDATE {}.lanes SET epoch = epoch + 1, owner = {owner}, leased_until = now() + interval '1 hour' \
         WHERE lane = {}",
        place.schema,
        message(1).lane,
    );
    conn.execute(AssertSqlSafe(lease)).await.unwrap();
    conn.execute("SELECT pg_advisory_unlock(4711)").await.unwrap();
    assert_eq!(looking.await.unwrap().unwrap(), []);
    slow.close().await;
    new.close().await;
    place.remove().await;
}
