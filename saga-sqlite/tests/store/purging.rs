//! What is kept for a time only, where the suite would have to wait for hours.

use std::time::Duration;

use crate::support::{Error, store};
use rusqlite::Connection;
use saga_core::key::Tenant;
use saga_core::store::{Headers, MessageId, MessageKind, NewMessage, Outbox as _, Purge as _, StartIn as _, lane_of};
use saga_sqlite::SqliteStore;

const HOUR: Duration = Duration::from_hours(1);

async fn publish(store: &SqliteStore, key: &'static str, number: u128) {
    let tenant = Tenant::default();
    let message = NewMessage {
        id: MessageId(uuid::Uuid::from_u128(number)),
        kind: MessageKind::Event,
        aggregate_type: "stock".into(),
        aggregate_id: key.into(),
        event_type: "StockCounted".into(),
        payload: Vec::new(),
        position: 0,
        lane: lane_of(&tenant, "stock", key),
        headers: Headers::default(),
        due_in: Duration::ZERO,
        tenant,
    };
    let mut conn = Connection::open(store.path()).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.publish_in(&mut conn, message).await.unwrap();
    conn.execute_batch("COMMIT").unwrap();
}

/// The keys were last used that many hours earlier than they were.
async fn age(store: &SqliteStore, hours: i64) {
    let sql = format!("UPDATE saga_published SET published_at = published_at - {}", hours * 3_600_000_000);
    store.write(move |conn| -> Result<(), Error> { Ok(conn.execute_batch(&sql)?) }).await.unwrap();
}

async fn positions(store: &SqliteStore) -> Vec<(String, i64)> {
    let read = |conn: &Connection| -> Result<Vec<(String, i64)>, Error> {
        let mut statement = conn.prepare("SELECT aggregateid, position FROM saga_published ORDER BY aggregateid")?;
        let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        Ok(rows)
    };
    store.read(read).await.unwrap()
}

#[tokio::test]
async fn a_key_is_forgotten_when_it_was_not_used_and_all_of_it_is_sent() {
    let (_folder, store) = store().await;
    for (number, key) in (1..).zip(["7", "8", "9"]) {
        publish(&store, key, number).await;
    }
    let sent = |conn: &mut Connection| -> Result<(), Error> {
        Ok(conn.execute_batch("DELETE FROM saga_outbox WHERE aggregateid <> '9'")?)
    };
    store.write(sent).await.unwrap();
    age(&store, 3).await;
    assert_eq!(store.forget_published(HOUR * 3, 100).await.unwrap(), 0, "the date is exact to an hour");
    // It is used again, which dates it anew.
    publish(&store, "8", 4).await;
    assert_eq!(store.forget_published(HOUR, 100).await.unwrap(), 1);
    assert_eq!(positions(&store).await, [("8".to_owned(), 2), ("9".to_owned(), 1)]);
    assert_eq!(store.depth().await.unwrap().rows, 2);
    store.close().await;
}
