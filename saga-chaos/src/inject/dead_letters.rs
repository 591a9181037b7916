use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use saga_core::Tenant;
use saga_core::store::{
    DeadLetterId, DeadLetters as _, Headers, MessageId, MessageKind, NewMessage, StartIn as _, StoreError, lane_of,
};
use saga_core::transport::service_topic;
use saga_postgres::PostgresStore;
use sqlx::types::Uuid;
use sqlx::{Connection as _, PgConnection};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Count, Counts};
use crate::plan::{PlannedLetter, Role};
use crate::world::{Database, Diary, Happened};

const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How long a message may take to be written: its database is killed and started again.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often the purge of an order must have been refused before the operator decides about its letter.
const REFUSALS_MIN: u32 = 2;

/// The newest order that has ended and is not among those.
const NEWEST: &str = "SELECT s.key FROM saga.sagas s JOIN saga.progress p USING (id) \
     WHERE p.ended_at IS NOT NULL AND p.state <> '' AND s.key <> ALL ($1) ORDER BY p.ended_at DESC LIMIT 1";
/// Each open letter with the order that it names, and when that order is due, if it is there.
const OPEN: &str = "SELECT l.id, saga.saga_key_of(l.headers), extract(epoch FROM p.expires_at)::float8, s.id IS NOT NULL \
     FROM saga.dead_letters l LEFT JOIN saga.sagas s ON s.key = saga.saga_key_of(l.headers) \
     LEFT JOIN saga.progress p ON p.id = s.id WHERE l.state = 'open' ORDER BY l.id";

/// An open letter: its id, the order that it names, when that order is due, and whether it is there.
type OpenLetter = (i64, String, Option<f64>, bool);

/// Malformed messages about orders, and the operator who decides about the dead letters that they become.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    orders: String,
    payments: String,
    counts: Arc<Counts>,
    diary: Arc<Diary>,
    seen: Mutex<Seen>,
}

/// What the operator has seen.
#[derive(Debug, Default)]
struct Seen {
    /// By the id of each letter, the purges that it has held up.
    letters: BTreeMap<i64, HeldUp>,
    /// Orders about which a letter was decided: a copy of the message may become another letter.
    decided: BTreeSet<String>,
}

/// The purges of an order that were refused while its letter is open.
#[derive(Debug, Clone, Copy)]
struct HeldUp {
    due: Option<f64>,
    refusals: u32,
}

impl DeadLetters {
    pub(crate) fn new(databases: &[Database], counts: &Arc<Counts>, diary: &Arc<Diary>) -> anyhow::Result<Self> {
        let url = |role| {
            let found = databases.iter().find(|database| database.role == role);
            found.map(|database| database.url.clone()).context("a service has no database")
        };
        let (orders, payments) = (url(Role::Orders)?, url(Role::Payments)?);
        Ok(Self { orders, payments, counts: Arc::clone(counts), diary: Arc::clone(diary), seen: Mutex::default() })
    }

    /// Sends each message at its time.
    pub(crate) async fn send(&self, letters: &[PlannedLetter]) -> anyhow::Result<()> {
        let begin = Instant::now();
        let mut chosen = Vec::new();
        for letter in letters {
            sleep_until(begin + letter.at).await;
            let sending = async {
                loop {
                    match self.send_one(letter.message, &chosen).await {
                        Ok(order) => return order,
                        Err(_) => sleep(LOOK_EVERY).await,
                    }
                }
            };
            let order = timeout(PATIENCE, sending).await.context("a malformed message could not be sent")?;
            self.diary.say(format_args!("a malformed message about {order} is sent"));
            self.counts.add(Count::MalformedMessages);
            chosen.push(order);
        }
        Ok(())
    }

    /// Has the payments service send it, so that it goes the way of every message.
    async fn send_one(&self, message: u128, chosen: &[String]) -> anyhow::Result<String> {
        let mut conn = PgConnection::connect(&self.orders).await?;
        let order: String = sqlx::query_scalar(NEWEST).bind(chosen).fetch_one(&mut conn).await?;
        conn.close().await?;
        let store = PostgresStore::connect(&self.payments).await?;
        let reply = malformed_reply(message, &order);
        let sent = store.write(async |conn| -> Result<(), StoreError> { store.publish_in(conn, reply).await }).await;
        store.close().await;
        sent.map(|()| order).map_err(anyhow::Error::from)
    }

    /// Decides about each letter once the purge of its order was refused often enough. It never ends by itself.
    pub(crate) async fn decide(&self) -> anyhow::Result<()> {
        loop {
            // While PostgreSQL is down there is nothing to see.
            let _ = self.look().await;
            sleep(LOOK_EVERY).await;
        }
    }

    async fn look(&self) -> anyhow::Result<()> {
        let mut conn = PgConnection::connect(&self.orders).await?;
        let open: Vec<OpenLetter> = sqlx::query_as(OPEN).fetch_all(&mut conn).await?;
        conn.close().await?;
        let decisions: Vec<(i64, String)> = {
            let mut seen = self.seen();
            open.into_iter().filter_map(|letter| self.decision(&mut seen, letter)).collect()
        };
        for (letter, order) in decisions {
            self.diary.enter(0, Happened::LetterDecided { letter });
            let store = PostgresStore::connect(&self.orders).await?;
            let id = DeadLetterId(letter);
            let decided = store.discard_dead_letter(&Tenant::default(), id, "it was sent to be discarded").await;
            store.close().await;
            decided?;
            self.diary.say(format_args!("the dead letter about {order} is discarded"));
            self.seen().decided.insert(order);
        }
        Ok(())
    }

    /// The letter, if it is to be decided now.
    fn decision(&self, seen: &mut Seen, (letter, order, due, is_there): OpenLetter) -> Option<(i64, String)> {
        let Seen { letters, decided } = seen;
        let held_up = letters.entry(letter).or_insert_with(|| {
            self.diary.enter(0, Happened::LetterOpened { letter, order: order.clone() });
            HeldUp { due, refusals: 0 }
        });
        if held_up.due.is_some() && due > held_up.due {
            held_up.refusals += 1;
            if held_up.refusals == REFUSALS_MIN {
                self.counts.add(Count::PurgesHeldUp);
            }
        }
        held_up.due = due;
        let is_over = held_up.refusals >= REFUSALS_MIN || !is_there || decided.contains(&order);
        is_over.then_some((letter, order))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reply about an order that does not say which command it answers.
fn malformed_reply(id: u128, order: &str) -> NewMessage {
    let (tenant, topic) = (Tenant::default(), service_topic(Role::Orders.name()));
    let step = "charge-card".to_owned();
    let headers = Headers { saga_key: Some(order.to_owned()), step: Some(step.clone()), ..Headers::default() };
    NewMessage {
        id: MessageId(Uuid::from_u128(id)),
        kind: MessageKind::Reply,
        lane: lane_of(&tenant, &topic, order),
        tenant,
        aggregate_type: topic,
        aggregate_id: order.to_owned(),
        event_type: step,
        payload: b"null".to_vec(),
        position: 1,
        headers,
        due_in: Duration::ZERO,
    }
}
