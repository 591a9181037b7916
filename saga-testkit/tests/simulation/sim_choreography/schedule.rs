//! One schedule: what is published when, what breaks, and what stands in the end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::engine::Happened;
use saga_core::env::{BoxFuture, Environment};
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryStore};
use saga_core::store::{
    Headers, MessageId, MessageKind, Outbox as _, StoreError, StoreErrorKind, Timestamp, Work as _,
};
use saga_core::transport::{Message, Transport as _};
use saga_core::{Event, Runtime, Service, Tenant};
use saga_testkit::sim::Random;
use saga_testkit::sim::executor::{Control, Executor, Finish, Limits, SimEnvironment};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::broker::Broker;
use super::judge::Book;
use super::services::{CardCharged, CardDeclined, OrderPlaced, STOCK_MAX, StockRejected, services};

/// The sagas of a schedule.
pub(crate) const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
const NAMES: [&str; 3] = ["stock", "payments", "shipping"];
/// How many processes each service has.
const REPLICAS: usize = 2;
/// Within this time everything is published, and everything breaks.
const BUSY: Duration = Duration::from_secs(20);
/// Behind it everything must come to an end within this time.
const QUIET_WITHIN: Duration = Duration::from_mins(6);
const LIMITS: Limits = Limits { polls: 4_000_000, polls_without_time: 50_000, time: Duration::from_mins(20) };
const LEASE: Duration = Duration::from_secs(5);

/// A mistake that is made on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    /// The broker forgets some of what it has accepted.
    Forgets,
    /// An undo that comes before its order is forgotten: nothing bars the step.
    NoTombstone,
    /// The payments do not hear what undoes them.
    IgnoresUndos,
}

/// Runs the schedule of that seed.
pub(crate) fn run(seed: u64, plant: Option<Plant>) -> Book {
    let mut random = Random::new(seed);
    let poll_max = Duration::from_nanos(*random.pick(&[0, 200, 20_000]));
    let mut executor = Executor::new(seed, poll_max);
    let world = World::new(&executor, &mut random, plant);
    let book = Arc::new(Mutex::new(Book::default()));
    let (main, end) = (world.live(random), Arc::clone(&book));
    let finish = executor.run(
        Box::pin(async move {
            *end.lock().unwrap() = main.await;
        }),
        LIMITS,
    );
    let mut book = book.lock().unwrap().clone();
    if finish != Finish::Done {
        book.unfinished = Some(format!("{finish:?}"));
    }
    book.panics = executor.panics().iter().map(|panicked| panicked.message.clone()).collect();
    book.trace = executor.trace();
    book
}

/// The runtimes that are up, by their service and replica.
type Runtimes = Arc<Mutex<BTreeMap<(usize, usize), Runtime<MemoryStore>>>>;

struct World {
    control: Control,
    env: SimEnvironment,
    broker: Broker,
    stores: Vec<MemoryStore>,
    services: [Service<MemoryStore>; 3],
    runtimes: Runtimes,
    crashes: Arc<AtomicU64>,
    failed_commits: Arc<AtomicU64>,
}

impl World {
    fn new(executor: &Executor, random: &mut Random, plant: Option<Plant>) -> Arc<Self> {
        let (control, env) = (executor.control(), executor.world());
        // The clocks of the services differ.
        let store = |nth: u64| {
            MemoryStore::with_environment(Arc::new(control.process(Duration::from_secs(1_000_000 + nth * 3))))
        };
        let deadline = Duration::from_secs(*random.pick(&[6, 15, 60]));
        Arc::new(Self {
            stores: (0..3).map(store).collect(),
            broker: Broker::new(env.clone(), random.fork(), plant),
            services: services(deadline, plant == Some(Plant::IgnoresUndos)),
            runtimes: Arc::default(),
            crashes: Arc::default(),
            failed_commits: Arc::default(),
            control,
            env,
        })
    }

    async fn live(self: Arc<Self>, mut random: Random) -> Book {
        for service in 0..NAMES.len() {
            for replica in 0..REPLICAS {
                let crashes = (0..random.below(3)).map(|_| Duration::from_millis(random.below(12_000))).collect();
                self.env.spawn(Box::pin(Arc::clone(&self).keep_alive(service, replica, crashes)));
            }
        }
        // Queues outlive whoever reads them, but somebody has to declare them once.
        while self.runtimes.lock().unwrap().len() < NAMES.len() * REPLICAS {
            self.env.sleep(Duration::from_millis(50)).await;
        }
        self.publish_all(&mut random);
        self.env.sleep(BUSY).await;
        self.broker.calm_down();
        let until = self.env.now() + QUIET_WITHIN;
        let mut quiet_since = 0;
        while quiet_since < 2 * LEASE.as_secs() && self.env.now() < until {
            quiet_since = if self.is_quiet().await { quiet_since + 1 } else { 0 };
            self.env.sleep(Duration::from_secs(1)).await;
        }
        self.book(quiet_since > 0).await
    }

    /// Somebody places orders, more than once, and meddles with what the services tell each other.
    fn publish_all(self: &Arc<Self>, random: &mut Random) {
        for key in KEYS {
            let amount = *random.pick(&[3, 7, STOCK_MAX + 1, -1]);
            let at = |random: &mut Random| Duration::from_millis(random.below(8_000));
            for _ in 0..random.between(1, 3) {
                let (at, id) = (at(random), random.bits());
                self.tell_later(at, id, key, &OrderPlaced(amount));
            }
            if random.per_mille(250) {
                let (at, id) = (at(random), random.bits());
                self.tell_later(at, id, key, &StockRejected(amount));
            }
            if random.per_mille(250) {
                let (at, id) = (at(random), random.bits());
                self.tell_later(at, id, key, &CardDeclined(amount));
            }
            if random.per_mille(150) {
                let (at, id) = (at(random), random.bits());
                self.tell_later(at, id, key, &CardCharged(amount));
            }
        }
    }

    fn tell_later<E: Event>(self: &Arc<Self>, at: Duration, id: u64, key: &str, event: &E) {
        let message = Message {
            id: MessageId(Uuid::from_u128(u128::from(id))),
            kind: MessageKind::Event,
            tenant: Tenant::default(),
            topic: E::NAME.to_owned(),
            key: key.to_owned(),
            event_type: E::NAME.to_owned(),
            payload: serde_json::to_vec(event).unwrap(),
            committed_at: Timestamp(i64::MAX),
            headers: Headers::default(),
        };
        let world = Arc::clone(self);
        self.env.spawn(Box::pin(async move {
            world.env.sleep(at).await;
            while world.broker.publish(vec![message.clone()]).await.remove(0).is_err() {
                world.env.sleep(Duration::from_millis(20)).await;
            }
        }));
    }

    /// Keeps a process running, which crashes after each of these times.
    async fn keep_alive(self: Arc<Self>, service: usize, replica: usize, crashes: Vec<Duration>) {
        let mut crashes = crashes.into_iter();
        loop {
            let env = self.control.process(Duration::from_secs(7));
            let (told, started) = oneshot::channel();
            let (world, own) = (Arc::clone(&self), env.clone());
            env.spawn(Box::pin(async move {
                let _ = told.send(world.start(service, own).await);
            }));
            let Ok(Some(runtime)) = started.await else {
                self.control.kill(env.process());
                self.env.sleep(Duration::from_millis(300)).await;
                continue;
            };
            self.runtimes.lock().unwrap().insert((service, replica), runtime);
            let Some(crash) = crashes.next() else { return };
            self.env.sleep(crash).await;
            self.control.kill(env.process());
            self.crashes.fetch_add(1, Ordering::Relaxed);
            self.env.sleep(Duration::from_millis(900)).await;
        }
    }

    async fn start(&self, service: usize, env: SimEnvironment) -> Option<Runtime<MemoryStore>> {
        let store = self.stores[service].clone();
        let hook = Failing { broker: self.broker.clone(), failed: Arc::clone(&self.failed_commits) };
        let builder = Runtime::builder(store.with_commit_hook(Arc::new(hook)))
            .environment(Arc::new(env))
            .transport(self.broker.clone())
            .service(&self.services[service])
            .settings(|settings| {
                settings.lease_ttl = LEASE;
                settings.member_ttl = Duration::from_secs(3);
                settings.poll_interval = Duration::from_millis(400);
                settings.message_attempts = 1_000;
            });
        builder.start().await.ok()
    }

    async fn is_quiet(&self) -> bool {
        for store in &self.stores {
            let (depth, backlog) = (store.depth().await, store.backlog().await);
            if depth.map_or(1, |depth| depth.rows) > 0 || backlog.map_or(1, |backlog| backlog.0) > 0 {
                return false;
            }
        }
        self.broker.is_empty()
    }

    /// What stands in the stores, what was told, and what the timelines say.
    async fn book(&self, is_quiet: bool) -> Book {
        let mut book = Book::default();
        for (store, what) in self.stores.iter().zip([
            ["reserve", "unreserve"].as_slice(),
            &["charge", "refund"],
            &["pack", "unpack", "ship"],
        ]) {
            for key in KEYS {
                for what in what {
                    let times = store.read(|table| table.counter(&format!("{what} {key}")));
                    book.effects.insert(((*what).to_owned(), key.to_owned()), times);
                }
            }
        }
        let shipping = self.runtimes.lock().unwrap().get(&(2, 0)).cloned();
        for key in KEYS {
            let Some(runtime) = &shipping else { continue };
            let Ok(Some(timeline)) = runtime.admin().query().timeline(key).await else { continue };
            for entry in timeline.entries {
                if let Happened::Step { step, became, .. } = entry.what {
                    book.reported.insert((step, key.to_owned()), became);
                }
            }
        }
        (book.told, book.doubled, book.late) = {
            let broker = self.broker.lock();
            (broker.told.clone(), broker.doubled, broker.late)
        };
        book.crashes = self.crashes.load(Ordering::Relaxed);
        book.failed_commits = self.failed_commits.load(Ordering::Relaxed);
        if !is_quiet {
            let mut waits = Vec::new();
            for (store, name) in self.stores.iter().zip(NAMES) {
                waits.push(format!("{name}: {:?} to send, {:?} to do", store.depth().await, store.backlog().await));
            }
            book.unfinished = Some(format!("{waits:?}, the broker is empty: {}", self.broker.is_empty()));
        }
        book
    }
}

/// Fails commits, before or behind the moment at which they are made.
struct Failing {
    broker: Broker,
    failed: Arc<AtomicU64>,
}

impl CommitHook for Failing {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        let error = || StoreError::new(StoreErrorKind::Unavailable, "commit", "a bad day");
        let fate = match point {
            CommitPoint::Committing(_) if self.broker.happens(15) => CommitFate::Fail(error()),
            CommitPoint::Committing("transact") | CommitPoint::Committed(_) if self.broker.happens(15) => {
                CommitFate::InDoubt
            }
            _ => CommitFate::Proceed,
        };
        if !matches!(fate, CommitFate::Proceed) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        Box::pin(std::future::ready(fate))
    }
}
