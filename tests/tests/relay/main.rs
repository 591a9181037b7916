//! What becomes of messages that cannot be sent now: for want of a receiver, of a broker, or of a transport without bugs.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod full_queue;
mod moody;
mod outage;

use std::sync::Arc;
use std::time::Duration;

use moody::{Mood, Moody};
use saga_core::engine::ComponentHealth;
use saga_core::memory::{MemoryConn, MemoryStore, MemoryTransport};
use saga_core::store::{DeadLetterFilter, DeadLetterReason, MessageKind, Outbox as _, ParkedKey};
use saga_core::transport::{Settlement, Subscription, Transport as _, service_topic};
use saga_core::{Outcome, Runtime, Saga, Service, Settings, StepContext, StepError, saga_step};
use saga_tests::Warnings;

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", no_compensation)]
    pub(crate) async fn charge_card(cents: i64) -> Result<String, StepError>;
}

#[saga_step(implements = contracts::charge_card)]
async fn charge_card(tx: &mut MemoryConn, ctx: &StepContext, cents: i64) -> Result<String, StepError> {
    tx.put(ctx.key(), "charged")?;
    tx.add("charges", 1)?;
    Ok(format!("payment of {cents}"))
}

fn create_order() -> Saga<MemoryStore, i64> {
    Saga::named("create-order").input::<i64>().step::<contracts::charge_card>().build().unwrap()
}

async fn orders(store: &MemoryStore, transport: &Moody, change: fn(&mut Settings)) -> Runtime<MemoryStore> {
    Runtime::builder(store.clone())
        .transport(transport.clone())
        .saga(&create_order())
        .saga(&full_queue::ship_order())
        .settings(|settings| {
            settings.service = Some("orders".into());
            change(settings);
        })
        .start()
        .await
        .unwrap()
}

async fn payments(store: &MemoryStore, transport: &Moody) -> Runtime<MemoryStore> {
    let service = Service::named("payments").host::<charge_card>().build().unwrap();
    Runtime::builder(store.clone()).transport(transport.clone()).service(&service).start().await.unwrap()
}

/// Asks until there is an answer. The clock is the test's: it goes on only when nobody has anything to do.
async fn wait_for<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_hours(3), asking).await.unwrap()
}

async fn parked(runtime: &Runtime<MemoryStore>) -> Vec<ParkedKey> {
    runtime.admin().outbox().parked().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_command_waits_in_sight_until_its_host_comes() {
    let (store, host, transport) = (MemoryStore::new(), MemoryStore::new(), Moody::default());
    let runtime = orders(&store, &transport, |_| {}).await;
    let running = runtime.start(&create_order(), "o-1", 12).await.unwrap();
    // Far more often than what is refused for what it is.
    let waiting = wait_for(async || parked(&runtime).await.pop().filter(|key| key.attempts >= 30)).await;
    assert!(waiting.retry_at > Some(waiting.since), "it is tried again by itself: {waiting:?}");
    assert!(waiting.error.contains("no subscription"), "{waiting:?}");
    let pauses = Duration::from_secs(30) * 31;
    assert!(waiting.retry_at.unwrap().0 - waiting.since.0 < i64::try_from(pauses.as_micros()).unwrap(), "capped");
    let depth = runtime.admin().outbox().depth().await.unwrap();
    assert_eq!((depth.rows, depth.parked), (1, 1), "what was sent again meanwhile is the same message");
    assert!(depth.oldest_age.unwrap() > Duration::from_mins(10), "{depth:?}");
    assert!(runtime.health().is_healthy(), "nobody is to blame: {:?}", runtime.health());
    let _payments = payments(&host, &transport).await;
    assert_eq!(running.outcome().await.unwrap().to_string(), "completed");
    assert_eq!(host.read(|table| table.counter("charges")), 1);
    assert_eq!(parked(&runtime).await, []);
    wait_for(async || (store.depth().await.unwrap().rows == 0).then_some(())).await;
}

#[tokio::test(start_paused = true)]
async fn g10_a_message_that_makes_the_transport_panic_holds_up_itself_only() {
    let (store, host, transport) = (MemoryStore::new(), MemoryStore::new(), Moody::default());
    let _payments = payments(&host, &transport).await;
    let runtime = orders(&store, &transport, |_| {}).await;
    transport.set(Mood { panics_at: vec![b"13".to_vec()], ..Mood::default() });
    let mut running = Vec::new();
    for cents in [13, 14, 15] {
        running.push(runtime.start(&create_order(), format!("o-{cents}"), cents).await.unwrap());
    }
    for other in &running[1..] {
        assert_eq!(other.outcome().await.unwrap().to_string(), "completed");
    }
    let waiting = wait_for(async || parked(&runtime).await.pop().filter(|key| key.attempts > 3)).await;
    assert!(waiting.error.contains("panicked: at 13"), "{waiting:?}");
    transport.set(Mood::default());
    assert_eq!(running[0].outcome().await.unwrap().to_string(), "completed");
    assert_eq!(host.read(|table| table.counter("charges")), 3);
}

#[tokio::test(start_paused = true)]
async fn g10_a_panic_while_receiving_ends_no_reception() {
    let (store, host, transport) = (MemoryStore::new(), MemoryStore::new(), Moody::default());
    transport.set(Mood { panics_in_receive: 7, ..Mood::default() });
    let _payments = payments(&host, &transport).await;
    let runtime = orders(&store, &transport, |_| {}).await;
    let running = runtime.start(&create_order(), "o-1", 12).await.unwrap();
    assert_eq!(running.outcome().await.unwrap().to_string(), "completed");
    assert_eq!(transport.mood().panics_in_receive, 0, "the panics were met");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_stays_away_is_warned_of_once_and_shown() {
    let (store, host, transport) = (MemoryStore::new(), MemoryStore::new(), Moody::default());
    let _payments = payments(&host, &transport).await;
    let runtime = orders(&store, &transport, |_| {}).await;
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    transport.set(Mood { is_away: true, ..Mood::default() });
    let running = runtime.start(&create_order(), "o-1", 12).await.unwrap();
    tokio::time::sleep(Duration::from_mins(30)).await;
    let ComponentHealth::Failing { since, failures, last_error } = runtime.health().transport else { panic!() };
    assert!(since > Duration::from_mins(29) && last_error.contains("away"), "{since:?} {last_error}");
    let most = 30 * 60 / 2 + 20;
    assert!((10..most).contains(&failures), "{failures} attempts in half an hour");
    assert_eq!(parked(&runtime).await, [], "an outage is nobody's fault");
    transport.set(Mood::default());
    assert_eq!(running.outcome().await.unwrap().to_string(), "completed");
    assert!(runtime.health().is_healthy());
    assert_eq!(warnings.of("component=\"transport\"").len(), 1, "{warnings:?}");
    assert_eq!(warnings.all().len(), 1, "{warnings:?}");
}

/// Receives under the service's own name and rejects everything, until the transport gives it up.
async fn reject_until_given_up(transport: &MemoryTransport, count: usize) {
    let topic = service_topic("payments");
    let subscription = Subscription { name: topic.clone(), topics: vec![topic], prefetch: 10 };
    let mut foreign = transport.subscribe(subscription).await.unwrap();
    while transport.dead_lettered().len() < count {
        let came = foreign.receive(10).await.unwrap();
        let rejected: Vec<_> = came.iter().map(|delivery| (delivery.tag, Settlement::Reject)).collect();
        foreign.settle(&rejected).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_transport_gave_up_is_a_dead_letter_that_can_be_replayed() {
    let (store, host) = (MemoryStore::new(), MemoryStore::new());
    let transport = Moody::around(MemoryTransport::new().with_rejections_max(3));
    // Somebody looks after what is given up, as a broker does.
    drop(transport.inner.dead_letters(&service_topic("payments"), 1).await.unwrap());
    let runtime = orders(&store, &transport, |settings| settings.reply_timeout = Duration::from_hours(9)).await;
    let (inner, foreign) = (transport.inner.clone(), Arc::new(tokio::sync::Notify::new()));
    let ready = Arc::clone(&foreign);
    let rejecting = tokio::spawn(async move {
        reject_until_given_up(&inner, 1).await;
        ready.notify_one();
    });
    let running = runtime.start(&create_order(), "o-1", 12).await.unwrap();
    foreign.notified().await;
    rejecting.await.unwrap();
    let given_up = transport.inner.dead_lettered().remove(0);
    assert_eq!(given_up.kind, MessageKind::Command);
    let payments = payments(&host, &transport).await;
    let Outcome::Stuck { step, reason, .. } = running.outcome().await.unwrap() else { panic!() };
    assert_eq!(step, "charge-card");
    assert!(reason.contains("given-up"), "{reason}");
    let desk = payments.admin().dead_letters();
    let letters = desk.list(DeadLetterFilter::default()).await.unwrap();
    let [letter] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((letter.letter.reason, letter.letter.attempts), (DeadLetterReason::DeliveryLimit, 4));
    assert_eq!(letter.letter.source, "payments");
    let header = |name: &str, text: &str| letter.letter.headers.contains(&(name.to_owned(), text.to_owned()));
    assert!(header("x-death-queue", "service:payments") && header("x-death-reason", "rejected"), "{letter:?}");
    assert_eq!(letter.letter.message.as_ref().map(|message| message.id), Some(given_up.id));
    desk.replay(letter.letter.id, "the stranger is gone").await.unwrap();
    assert_eq!(running.closed().await.unwrap().to_string(), "completed");
    assert_eq!(host.read(|table| table.counter("charges")), 1);
    wait_for(async || (store.depth().await.unwrap().rows == 0).then_some(())).await;
}
