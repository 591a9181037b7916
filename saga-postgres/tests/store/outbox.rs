//! Which commits about the outbox wait for the disk, and whose turn it is.

use std::collections::BTreeSet;
use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{
    Changes, Headers, LANES, Lease, Members as _, MessageId, MessageKind, NewMessage, Outbox as _, Records as _,
    lane_of,
};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::support::Place;

fn message(number: u128) -> NewMessage {
    let tenant = Tenant::default();
    NewMessage {
        id: MessageId(uuid::Uuid::from_u128(number)),
        lane: lane_of(&tenant, "order", "7"),
        tenant,
        aggregate_type: "order".into(),
        aggregate_id: "7".into(),
        event_type: "OrderPlaced".into(),
        kind: MessageKind::Event,
        payload: b"{}".to_vec(),
        position: 1,
        headers: Headers::default(),
        due_in: Duration::ZERO,
    }
}

/// A message must not be lost (G4). A row that comes back is only sent twice.
#[tokio::test]
async fn only_the_deletion_of_sent_messages_does_not_wait_for_the_disk() {
    let place = Place::new().await;
    let store = place.open().await;
    let mut conn = place.connection().await;
    let note = "INSERT INTO notes (text) VALUES (lower(TG_OP) || ' ' || current_setting('synchronous_commit'))";
    let trigger = format!(
        "CREATE FUNCTION {0}.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {1}; RETURN NULL; END $$; \
         CREATE TRIGGER note AFTER INSERT OR DELETE ON {0}.outbox FOR EACH ROW EXECUTE FUNCTION {0}.note()",
        place.schema,
        note.replace("notes", &format!("{}.notes", place.schema)),
    );
    conn.execute(sqlx::raw_sql(AssertSqlSafe(trigger))).await.unwrap();
    for number in [1, 2] {
        store.record(vec![Changes { messages: vec![message(number)], ..Changes::default() }]).await.unwrap();
        store.sent(&[message(number).id]).await.unwrap();
    }
    assert_eq!(place.notes().await, ["insert on", "delete off", "insert on", "delete off"]);
    assert!(store.is_empty().await.unwrap());
    store.close().await;
    place.remove().await;
}

/// Messages wait in all lanes, and a relay that is behind takes few at a time.
#[tokio::test]
async fn each_lane_has_its_turn_under_load() {
    let place = Place::new().await;
    let store = place.open().await;
    let waiting = |lane| NewMessage { lane, aggregate_id: lane.to_string(), ..message(u128::from(lane) + 1) };
    store.record(vec![Changes { messages: (0..LANES).map(waiting).collect(), ..Changes::default() }]).await.unwrap();
    let lease = Lease { owner: store.join(Duration::from_mins(1)).await.unwrap().member, ttl: Duration::from_mins(1) };
    let mut had_turns = BTreeSet::new();
    // One of 64 is never among 16 in 100 tries less than once in a thousand million runs.
    for _ in 0..100 {
        let lanes = store.lease_lanes(lease, 16).await.unwrap();
        assert_eq!(lanes.len(), 16);
        had_turns.extend(lanes.iter().map(|lane| lane.lane));
        store.release_lanes(&lanes).await.unwrap();
    }
    assert_eq!(had_turns.len(), usize::from(LANES), "{had_turns:?}");
    store.close().await;
    place.remove().await;
}
