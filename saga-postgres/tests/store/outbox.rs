//! Which commits about the outbox wait for the disk.

use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{Changes, Headers, MessageId, MessageKind, NewMessage, Outbox as _, Records as _, lane_of};
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
