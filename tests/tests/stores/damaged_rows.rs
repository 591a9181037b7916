//! What a store cannot read holds up nothing else: a newer version wrote it, or the storage is damaged.

use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{
    Changes, ClaimRequest, Claimed, Expiry, Headers, LANES, Lease, Message, MessageId, MessageKind, NewMessage,
    NewReceived, OutboxRow, SagaId, StoreError, Timestamp, UnreadableWork, WorkId, lane_of,
};
use saga_postgres::PostgresStore;
use saga_sqlite::SqliteStore;
use saga_testkit::one_step::{advanced, begun, completed, definition, member};
use saga_tests::Books;
use sqlx::AssertSqlSafe;

const HOUR: Duration = Duration::from_hours(1);

/// A store whose tables a test may damage.
trait Tables: Books {
    /// Executes a statement, in which `{t}` stands for what the names of the tables begin with.
    fn execute(&self, sql: &str) -> impl Future<Output = ()> + Send;
}

impl Tables for SqliteStore {
    async fn execute(&self, sql: &str) {
        let sql = sql.replace("{t}", "saga_");
        let run = move |conn: &mut rusqlite::Connection| -> Result<(), StoreError> {
            conn.execute_batch(&sql).unwrap();
            Ok(())
        };
        self.write(run).await.unwrap();
    }
}

impl Tables for PostgresStore {
    async fn execute(&self, sql: &str) {
        let sql = sql.replace("{t}", &format!("{}.", self.schema()));
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(self.pool()).await.unwrap();
    }
}

/// Starts a saga and records its first step. Returns the saga, and the row of its next step, which is free.
async fn went_on<S: Books>(store: &S, key: &'static str, lease: Lease) -> (SagaId, WorkId) {
    let claim = begun(store, key).await;
    let next = WorkId(store.reserve_ids(1).await.unwrap().start);
    let mut changes = advanced(&claim, next, lease);
    changes.commands[0].lease = None;
    assert!(store.record(vec![changes]).await.unwrap()[0].is_ok());
    (claim.saga, next)
}

async fn claim<S: Books>(store: &S, lease: Lease) -> Claimed {
    let request = ClaimRequest { lease, limit: 10, definitions: [definition()].into(), takes_over: true };
    let mut claimed = store.claim(request).await.unwrap();
    claimed.unreadable.sort_by_key(|row| row.work);
    claimed
}

fn rows(claimed: &Claimed) -> Vec<WorkId> {
    claimed.work.iter().map(|work| work.work.id).collect()
}

/// Each damage in a saga of its own: its row of work, its state, one of its records; one is gone.
async fn work<S: Tables>() {
    let (store, _kept) = S::fresh().await;
    let lease = member(&store, HOUR).await;
    let mut damaged = Vec::new();
    for (key, column) in [("a", "work SET kind"), ("b", "progress SET status"), ("c", "records SET outcome")] {
        let (SagaId(saga), row) = went_on(&store, key, lease).await;
        let id = if key == "b" { "id" } else { "saga" };
        store.execute(&format!("UPDATE {{t}}{column} = 'of-tomorrow' WHERE {id} = {saga}")).await;
        damaged.push(row);
    }
    let (SagaId(gone), row_of_gone) = went_on(&store, "gone", lease).await;
    store.execute(&format!("DELETE FROM {{t}}progress WHERE id = {gone}")).await;
    damaged.push(row_of_gone);
    let (_, sound) = went_on(&store, "d", lease).await;
    let claimed = claim(&store, lease).await;
    assert_eq!((rows(&claimed), claimed.sagas.len()), (vec![sound], 1));
    assert_eq!(claimed.unreadable.iter().map(|row| row.work).collect::<Vec<_>>(), damaged);
    for UnreadableWork { work, problem } in &claimed.unreadable {
        let expected =
            if *work == row_of_gone { "it does not exist" } else { "\"of-tomorrow\" is not a value of this version" };
        assert!(problem.contains(expected), "{work:?}: {problem}");
    }
    // They are leased, and claimed again at the end of the lease.
    let again = claim(&store, lease).await;
    assert_eq!((again.work.len(), again.unreadable), (0, Vec::new()));
    store.execute("UPDATE {t}work SET kind = 'do', owner = NULL, leased_until = NULL").await;
    let mended = claim(&store, lease).await;
    assert_eq!((rows(&mended), mended.unreadable.len()), (vec![damaged[0], sound], 3));
}

fn message(number: u32) -> Message {
    Message {
        id: MessageId(uuid::Uuid::from_u128(number.into())),
        kind: MessageKind::Event,
        tenant: Tenant::default(),
        topic: "orders".into(),
        key: number.to_string(),
        event_type: "OrderPlaced".into(),
        payload: Vec::new(),
        committed_at: Timestamp(1),
        headers: Headers::default(),
    }
}

async fn messages<S: Tables>() {
    let (store, _kept) = S::fresh().await;
    let lease = member(&store, HOUR).await;
    let ids = store.reserve_ids(2).await.unwrap();
    let received = ids.clone().zip(1..).map(|(id, number)| NewReceived {
        work: WorkId(id),
        message: message(number),
        lease: None,
    });
    store.receive(received.collect()).await.unwrap();
    store.execute(&format!("UPDATE {{t}}work SET payload = NULL WHERE id = {}", ids.start)).await;
    let claimed = store.claim_received(lease, 10).await.unwrap();
    assert_eq!(claimed.messages.into_iter().map(|claimed| claimed.message).collect::<Vec<_>>(), [message(2)]);
    assert_eq!(claimed.unreadable.iter().map(|row| row.work).collect::<Vec<_>>(), [WorkId(ids.start)]);
}

/// A message under this ordering key.
fn outgoing(number: u32, key: &str, position: u64) -> NewMessage {
    let tenant = Tenant::default();
    NewMessage {
        id: MessageId(uuid::Uuid::from_u128(number.into())),
        kind: MessageKind::Event,
        aggregate_type: "orders".into(),
        aggregate_id: key.into(),
        event_type: "OrderPlaced".into(),
        payload: Vec::new(),
        position,
        lane: lane_of(&tenant, "orders", key),
        tenant,
        headers: Headers::default(),
        due_in: Duration::ZERO,
    }
}

/// The ids of what a relay may send now, in the order of their numbers.
async fn sendable<S: Books>(store: &S, lease: Lease) -> Vec<MessageId> {
    let lanes = store.lease_lanes(lease, usize::from(LANES)).await.unwrap();
    let rows: Vec<OutboxRow> = store.read_lanes(&lanes, 100).await.unwrap();
    let mut ids: Vec<MessageId> = rows.iter().map(|row| row.id).collect();
    ids.sort_unstable();
    ids
}

/// The first message of one ordering key is damaged, the last one of another, none of the third.
async fn outbox<S: Tables>() {
    let (store, _kept) = S::fresh().await;
    let lease = member(&store, HOUR).await;
    let numbered = [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)].into_iter().zip(1..);
    let messages: Vec<NewMessage> = numbered.map(|((key, position), number)| outgoing(number, key, position)).collect();
    let ids: Vec<MessageId> = messages.iter().map(|message| message.id).collect();
    store.record(vec![Changes { messages, ..Changes::default() }]).await.unwrap();
    store.execute("UPDATE {t}outbox SET kind = 'of-tomorrow' WHERE aggregateid = 'a' AND position = 1").await;
    store.execute("UPDATE {t}outbox SET headers = 'damaged' WHERE aggregateid = 'b' AND position = 2").await;
    let sound = [ids[2], ids[4]];
    assert_eq!(sendable(&store, lease).await, sound);
    let mut parked = store.parked(None, 10).await.unwrap();
    parked.sort_by_key(|key| key.message);
    assert_eq!(parked.iter().map(|key| key.message).collect::<Vec<_>>(), [ids[0], ids[3]]);
    for (key, expected) in parked.iter().zip(["\"of-tomorrow\" is not a value", "the headers are not readable"]) {
        assert!(key.error.starts_with("it cannot be read: ") && key.error.contains(expected), "{}", key.error);
        assert_eq!((key.attempts, key.retry_at > Some(key.since)), (1, true));
    }
    store.sent(&sound).await.unwrap();
    assert_eq!(sendable(&store, lease).await, []);
    // What is over is purged meanwhile.
    let over = begun(&store, "over").await;
    let mut ended = completed(&over);
    ended.saga.as_mut().unwrap().expiry = Some(Box::new(Expiry::deleted_in(Duration::ZERO)));
    assert!(store.record(vec![ended]).await.unwrap()[0].is_ok());
    let epoch = store.lease_maintenance(lease.owner, HOUR).await.unwrap().unwrap();
    let expired = store.expired(10).await.unwrap();
    assert_eq!(store.purge(epoch, &expired, HOUR).await.unwrap().deleted, [over.saga]);
    // An operator has it tried again, in vain, and mends it.
    assert!(store.release(ids[0]).await.unwrap());
    assert_eq!(sendable(&store, lease).await, []);
    assert_eq!(store.parked(None, 10).await.unwrap().len(), 2);
    store.execute("UPDATE {t}outbox SET kind = 'event', headers = ''").await;
    for id in [ids[0], ids[3]] {
        assert!(store.release(id).await.unwrap());
    }
    assert_eq!(sendable(&store, lease).await, [ids[0], ids[1], ids[3]]);
}

#[tokio::test]
async fn sqlite_sends_the_messages_that_it_can_read() {
    outbox::<SqliteStore>().await;
}

#[tokio::test]
async fn postgres_sends_the_messages_that_it_can_read() {
    outbox::<PostgresStore>().await;
}

#[tokio::test]
async fn sqlite_hands_out_the_work_that_it_can_read() {
    work::<SqliteStore>().await;
}

#[tokio::test]
async fn postgres_hands_out_the_work_that_it_can_read() {
    work::<PostgresStore>().await;
}

#[tokio::test]
async fn sqlite_hands_out_the_messages_that_it_can_read() {
    messages::<SqliteStore>().await;
}

#[tokio::test]
async fn postgres_hands_out_the_messages_that_it_can_read() {
    messages::<PostgresStore>().await;
}
