//! What one process leaves for others is found by them without waiting for their poll; and with the poll alone.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Place, status, write_note};
use async_trait::async_trait;
use saga_core::memory::MemoryTransport;
use saga_core::store::{Hint, Hints as _, Message, Status};
use saga_core::transport::{Incoming, Subscription, Transport, TransportError, TransportErrorKind};
use saga_core::{Event, Runtime, Saga, Settings, State, StepContext, StepError, saga_step};
use saga_postgres::PostgresStore;
use serde::{Deserialize, Serialize};
use sqlx::{Executor as _, PgConnection};
use tokio::sync::Notify;

/// More than a process ever looks without a hint: when it starts, and when its connection for hints stands.
const ROUNDS: usize = 5;
/// No test waits for this poll.
const HOUR: Duration = Duration::from_hours(1);

#[derive(Serialize, Deserialize)]
struct Written(usize);

impl Event for Written {
    const NAME: &'static str = "written";
}

/// The step that takes a process's only slot: when it begins, and when it may end.
#[derive(Default)]
struct Held {
    begun: Notify,
    end: Notify,
}

#[saga_step]
async fn hold(_tx: &mut PgConnection, _nothing: usize, State(held): State<Arc<Held>>) -> Result<(), StepError> {
    held.begun.notify_one();
    held.end.notified().await;
    Ok(())
}

#[saga_step]
async fn note(tx: &mut PgConnection, ctx: &StepContext, number: usize) -> Result<(), StepError> {
    write_note(tx, &number.to_string()).await?;
    ctx.emit(&Written(number))
}

fn holding() -> Saga<PostgresStore, usize> {
    Saga::named("holding").input::<usize>().step::<hold>().build().expect("a valid saga")
}

fn noting() -> Saga<PostgresStore, usize> {
    Saga::named("noting").input::<usize>().step::<note>().build().expect("a valid saga")
}

/// A process. What it holds it holds longer than any test runs.
async fn process(
    store: &PostgresStore,
    poll: Duration,
    transport: impl Transport,
    held: &Arc<Held>,
    settings: fn(&mut Settings),
) -> Runtime<PostgresStore> {
    let all = move |all: &mut Settings| {
        (all.poll_interval, all.member_ttl, all.lease_ttl) = (poll, 3 * HOUR, 3 * HOUR);
        all.reply_timeout = all.reply_timeout.max(poll);
        settings(all);
    };
    let builder = Runtime::builder(store.clone()).saga(&holding()).saga(&noting()).state(Arc::clone(held));
    builder.transport(transport).settings(all).start().await.unwrap()
}

async fn completed(store: &PostgresStore, key: &str) {
    while status(store, key).await != Some(Status::Completed) {
        tokio::task::yield_now().await;
    }
}

/// Starts sagas in a process whose only slot is taken, and waits until another process has run each.
async fn another_process_runs_what_has_no_slot_here(place: &Place, poll: Duration, has_hints: bool) {
    let options = || if has_hints { place.options() } else { place.options().without_hints() };
    let full = PostgresStore::connect_with(options()).await.unwrap();
    let other = PostgresStore::connect_with(options()).await.unwrap();
    let held = Arc::new(Held::default());
    let here = process(&full, poll, MemoryTransport::new(), &held, |settings| settings.sagas_in_memory_max = 1).await;
    here.start(&holding(), "holds-the-slot", 0).await.unwrap();
    // The other process does not take it before.
    held.begun.notified().await;
    let there = process(&other, poll, MemoryTransport::new(), &held, |_| ()).await;
    for round in 0..ROUNDS {
        let key = format!("k-{round}");
        here.start(&noting(), &key, round).await.unwrap();
        completed(&full, &key).await;
    }
    // A step is counted when its process hears of the commit, which others see before.
    let run_here = || here.statistics().steps;
    while run_here() + there.statistics().steps < ROUNDS as u64 {
        tokio::task::yield_now().await;
    }
    // A claim that this process sent while the slot was free may arrive after the first start.
    assert!(run_here() <= 1, "{} of {ROUNDS} sagas were run here, where no slot was free", run_here());
    held.end.notify_one();
    here.shutdown().await;
    there.shutdown().await;
    full.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_is_picked_up_by_another_process_without_its_poll() {
    let place = Place::new().await;
    another_process_runs_what_has_no_slot_here(&place, HOUR, true).await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polling_alone_is_right() {
    let place = Place::new().await;
    another_process_runs_what_has_no_slot_here(&place, Duration::from_millis(20), false).await;
    place.remove().await;
}

/// A broker that this process cannot reach.
struct Unreachable;

#[async_trait]
impl Transport for Unreachable {
    fn name(&self) -> &'static str {
        "unreachable"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        messages.iter().map(|_| Err(unreachable())).collect()
    }

    async fn subscribe(&self, _subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        Err(unreachable())
    }
}

fn unreachable() -> TransportError {
    TransportError::new(TransportErrorKind::Unavailable, "publish", "there is no way to the broker")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_a_message_is_sent_by_another_process_without_its_poll() {
    let place = Place::new().await;
    let (one, other) = (place.open().await, place.open().await);
    let broker = MemoryTransport::new();
    let subscription = Subscription { name: "test".into(), topics: vec!["noting".into()], prefetch: 1 };
    let mut incoming = broker.subscribe(subscription).await.unwrap();
    let there = process(&other, HOUR, broker, &Arc::default(), |_| ()).await;
    let here = process(&one, HOUR, Unreachable, &Arc::default(), |_| ()).await;
    for round in 0..ROUNDS {
        let started = here.start(&noting(), format!("k-{round}"), round).await.unwrap();
        started.outcome().await.unwrap();
        let delivered = incoming.receive(1).await.unwrap().pop().unwrap();
        let message = delivered.message.unwrap();
        assert_eq!(message.payload, round.to_string().into_bytes());
        incoming.settle(&[(delivered.tag, saga_core::transport::Settlement::Accept)]).await.unwrap();
    }
    here.shutdown().await;
    there.shutdown().await;
    one.close().await;
    other.close().await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_made_again_and_all_is_looked_at_once() {
    let place = Place::new().await;
    let (one, other) = (place.open().await, place.open().await);
    let mut listener = other.listen().unwrap();
    // Once it stands, everything is looked at.
    while listener.next_hint().await != Hint::Inbox {}
    let mut conn = place.connection().await;
    let listening =
        "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND query LIKE '%' || current_schema() || '%'";
    let pid: i32 = sqlx::query_scalar(listening).fetch_one(&mut conn).await.unwrap();
    conn.execute(sqlx::query("SELECT pg_terminate_backend($1)").bind(pid)).await.unwrap();
    while listener.next_hint().await != Hint::Inbox {}
    for hint in std::iter::repeat_n(Hint::ALL, ROUNDS).flatten() {
        one.hint(hint);
        while listener.next_hint().await != hint {}
    }
    one.close().await;
    other.close().await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_pool_of_one_hints_take_no_connection_of_it() {
    let place = Place::new().await;
    let one = PostgresStore::connect_with(place.options().connections_max(1)).await.unwrap();
    let other = PostgresStore::connect_with(place.options().connections_max(1)).await.unwrap();
    let mut listener = other.listen().unwrap();
    while listener.next_hint().await != Hint::Inbox {}
    let (mine, theirs) = (one.pool().acquire().await.unwrap(), other.pool().acquire().await.unwrap());
    for _ in 0..ROUNDS {
        one.hint(Hint::Work);
        while listener.next_hint().await != Hint::Work {}
    }
    drop((mine, theirs));
    one.close().await;
    other.close().await;
    place.remove().await;
}

#[tokio::test]
async fn switched_off_there_are_none() {
    let place = Place::new().await;
    for options in [place.options().without_hints(), place.options().pgbouncer()] {
        let store = PostgresStore::connect_with(options).await.unwrap();
        store.hint(Hint::Work);
        assert!(store.listen().is_none());
        store.close().await;
        assert!(store.listen().is_none(), "a store that is closed begins nothing");
    }
    place.remove().await;
}
