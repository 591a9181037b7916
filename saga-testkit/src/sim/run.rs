use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use saga_core::env::Environment;
use saga_core::memory::MemoryStore;

use super::blows::strike;
use super::client::Client;
use super::definitions::{SimDefinition, definitions};
use super::executor::{Executor, Finish, Limits};
use super::finals::{finals, is_quiet, plans};
use super::log::Log;
use super::operate::operate;
use super::recorder::Recorder;
use super::replica::Replica;
use super::world::World;
use super::{Fault, Scenario};
use crate::checker::{Final, Guarantee, Ledger, Rest, Standing, Violation, check};

/// When a schedule is given up: far beyond what any of them needs.
const LIMITS: Limits = Limits { polls: 400_000, polls_without_time: 20_000, time: Duration::from_mins(10) };
/// When faults have ended, everything must have ended within this time: a few leases, the longest delays of the world,
/// and the operator's rounds.
const QUIET_WITHIN: Duration = Duration::from_secs(150);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How everything stands in the end.
type End = (Vec<Final>, Rest);

/// What came of one schedule.
#[derive(Debug)]
pub struct Report {
    /// The schedule.
    pub scenario: Scenario,
    /// What breaks a guarantee. Empty when all is well.
    pub violations: Vec<Violation>,
    /// What happened.
    pub ledger: Ledger,
    /// How often each fault was hit, in the order of [`Fault::ALL`].
    pub hits: Vec<u64>,
    /// A hash of which task was polled when.
    pub trace: u64,
    /// How many polls it took.
    pub polls: u64,
    /// The virtual time that passed.
    pub time: Duration,
}

/// Runs the schedule of that seed.
///
/// # Panics
/// When a definition of the simulation itself cannot be built.
pub fn run(seed: u64) -> Report {
    run_with(seed, None)
}

/// Runs the schedule of that seed, and keeps what the engine says in its tracing events: the time in microseconds, and
/// the text.
///
/// # Panics
/// When a definition of the simulation itself cannot be built.
pub fn run_logged(seed: u64) -> (Report, Vec<(u64, String)>) {
    let log = Log::default();
    let report = tracing::subscriber::with_default(log.clone(), || run_with(seed, Some(&log)));
    (report, log.take())
}

fn run_with(seed: u64, log: Option<&Log>) -> Report {
    static DEFINITIONS: OnceLock<Arc<[SimDefinition]>> = OnceLock::new();
    let definitions = DEFINITIONS.get_or_init(|| match definitions() {
        Ok(definitions) => definitions.into(),
        Err(error) => panic!("{error}"),
    });
    run_scenario(Scenario::draw(seed, definitions.len()), definitions, log)
}

fn run_scenario(scenario: Scenario, definitions: &Arc<[SimDefinition]>, log: Option<&Log>) -> Report {
    let mut executor = Executor::new(scenario.seed, scenario.poll_max);
    if let Some(log) = log {
        log.set_clock(executor.control());
    }
    let store = MemoryStore::with_environment(Arc::new(executor.world()));
    let recorder = Recorder::new(executor.control(), store.clone());
    let world = Arc::new(World::new(executor.world(), executor.control(), recorder, scenario.clone()));
    let end = Arc::new(Mutex::new(None));
    let main = live_through(Arc::clone(&world), store, Arc::clone(definitions), Arc::clone(&end));
    let finish = executor.run(Box::pin(main), LIMITS);
    let end = end.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (finals, mut rest) = end.unwrap_or_default();
    rest.repeats = world.repeats.load(std::sync::atomic::Ordering::Relaxed);
    rest.panics = executor.panics().iter().map(|panicked| panicked.message.clone()).collect();
    let ledger = Ledger { sagas: plans(&scenario, definitions), entries: world.recorder.take(), finals, rest };
    for end in &ledger.finals {
        match end.standing {
            Standing::Completed => world.hit(Fault::Completed),
            Standing::Compensated => world.hit(Fault::Compensated),
            _ => {}
        }
    }
    let violations = match finish {
        Finish::Done => check(&ledger),
        // Without an end there is nothing to compare with.
        _ => vec![gave_up(finish)],
    };
    let (trace, polls) = (executor.trace(), executor.polls());
    let (time, hits) = (world.control.now(), world.hits.counts());
    Report { scenario, violations, ledger, hits, trace, polls, time }
}

fn gave_up(finish: Finish) -> Violation {
    let about = match finish {
        Finish::Deadlock => "nothing was ready, and no timer waited",
        Finish::Livelock => "tasks woke each other without end",
        Finish::Done | Finish::TimeUp => "it did not come to an end",
    };
    Violation { guarantee: Guarantee::G8, saga: None, about: about.to_owned() }
}

/// First everything that can go wrong, then the calm in which everything must end.
async fn live_through(
    world: Arc<World>,
    store: MemoryStore,
    definitions: Arc<[SimDefinition]>,
    end: Arc<Mutex<Option<End>>>,
) {
    let scenario = &world.scenario;
    let replicas: Vec<_> = (0..scenario.replicas).map(|_| Replica::new(&world, &store, &definitions)).collect();
    for replica in &replicas {
        world.env.spawn(Box::pin(Arc::clone(replica).keep_alive()));
    }
    world.env.spawn(Box::pin(operate(Arc::clone(&world), replicas.clone(), store.clone())));
    let clients = |saga: u32, variant: u8| Client {
        world: Arc::clone(&world),
        replicas: replicas.clone(),
        definitions: Arc::clone(&definitions),
        saga,
        variant,
    };
    let (starting, striking) = (Busy::default(), Busy::default());
    for (saga, script) in (0..).zip(&scenario.sagas) {
        for (moment, variant) in &script.starts {
            world.env.spawn(starting.with(clients(saga, *variant).start_at(*moment)));
        }
    }
    for (moment, blow) in &scenario.blows {
        world.env.spawn(striking.with(strike(Arc::clone(&world), replicas.clone(), *moment, *blow)));
    }
    let busy_max = Duration::from_millis(world.draw(|random| random.between(500, 12_000)));
    world.env.sleep(busy_max).await;
    while !striking.is_over() {
        world.env.sleep(LOOK_EVERY).await;
    }
    world.calm_down();
    let until = world.control.now() + QUIET_WITHIN;
    while world.control.now() < until && !(starting.is_over() && is_quiet(&store, scenario).await) {
        world.env.sleep(LOOK_EVERY).await;
    }
    // Whoever asks again gets the same answer.
    for (saga, script) in (0..).zip(&scenario.sagas) {
        for variant in 0..script.variants.len() as u8 {
            let live = replicas[0].when_live().await;
            clients(saga, variant).start(&live).await;
        }
    }
    world.env.sleep(LOOK_EVERY).await;
    let finals = finals(&store, scenario).await;
    *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(finals);
}

/// Counts what still goes on.
#[derive(Debug, Default, Clone)]
struct Busy {
    count: Arc<()>,
}

impl Busy {
    fn with(&self, task: impl Future<Output = ()> + Send + 'static) -> saga_core::env::BoxFuture<'static, ()> {
        let held = Arc::clone(&self.count);
        Box::pin(async move {
            task.await;
            drop(held);
        })
    }

    fn is_over(&self) -> bool {
        Arc::strong_count(&self.count) == 1
    }
}

impl Report {
    /// A hash of everything that happened: equal for two runs of one seed.
    pub fn fingerprint(&self) -> u64 {
        self.trace ^ hash_of(&self.ledger)
    }
}

/// A hash of what is in the ledger (FNV-1a over its debug form).
fn hash_of(ledger: &Ledger) -> u64 {
    struct Hash(u64);
    impl std::fmt::Write for Hash {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            for byte in text.bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    // Writing into a number never fails.
    let _ = std::fmt::Write::write_fmt(&mut hash, format_args!("{ledger:?}"));
    hash.0
}
