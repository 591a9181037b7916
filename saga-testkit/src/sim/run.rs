use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use saga_core::env::Environment;
use saga_core::memory::MemoryStore;

use super::clients::{Client, ask_and_take_back, operate};
use super::executor::{Executor, Finish, Limits};
use super::results::{Log, finals, is_quiet, note_branches, note_times, plans, unknown_messages};
use super::sagas::{
    BATCH_DEFINITIONS, SimDefinition, SimService, begin_asking, definitions, external_definitions, lock_definitions,
    mutated, remote_definitions, services,
};
use super::schedule::{Counts, Disruption, Mutant, SagaScript, Scenario, load_definitions};
use super::world::{Fault, LEASE, PurgeLog, Recorder, Replica, Role, World, disrupt, misdate};
use crate::checker::{Final, Guarantee, Ledger, Op, Recorded, Rest, SagaPlan, Standing, Violation, check};

/// When a schedule is given up: far beyond what any of them needs.
const LIMITS: Limits = Limits { polls: 400_000, polls_without_time: 20_000, time: Duration::from_mins(10) };
/// The same where ended sagas are purged, which takes longer.
const LONG_LIMITS: Limits = Limits { polls: 8_000_000, polls_without_time: 20_000, time: Duration::from_hours(1) };
/// How often the stores are looked at for what was purged.
const PURGES_SEEN_WITHIN: Duration = Duration::from_millis(25);
/// When faults have ended, everything must have ended within this time: a few leases, the longest delays of the world,
/// and the operator's rounds.
const QUIET_WITHIN: Duration = Duration::from_secs(150);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long after a start a client cancels, or a person holds the saga up, at the latest.
const CANCEL_WITHIN_MILLIS: u64 = 3_000;
/// How long after a start a saga moves to another version at the latest.
const MOVE_WITHIN_MILLIS: u64 = 4_000;
/// By how much the clocks of two services differ.
const CLOCK_SECONDS: u64 = 700;

/// How everything stands in the end.
type End = (Vec<Final>, Rest);

/// The result of one schedule.
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

/// Runs the schedule of that seed with a mistake in it that is to be found, if it is one of several services.
///
/// # Panics
/// When a definition of the simulation itself cannot be built.
pub fn run_mutant(seed: u64, mutant: Mutant) -> Report {
    let parts = Parts::get();
    run_scenario(Scenario { mutant: Some(mutant), ..Scenario::draw(seed, parts.counts) }, parts, None)
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

/// What all schedules have in common.
struct Parts {
    counts: Counts,
    /// The definitions in the order of the counts.
    definitions: Arc<[SimDefinition]>,
    services: Vec<SimService>,
}

impl Parts {
    fn get() -> &'static Self {
        static PARTS: OnceLock<Parts> = OnceLock::new();
        PARTS.get_or_init(|| {
            let wrong = |error: &dyn std::fmt::Display| -> ! { panic!("{error}") };
            let local = definitions().unwrap_or_else(|error| wrong(&error));
            let remote = remote_definitions().unwrap_or_else(|error| wrong(&error));
            let services = services().unwrap_or_else(|error| wrong(&error));
            let external = external_definitions().unwrap_or_else(|error| wrong(&error));
            let load = load_definitions().unwrap_or_else(|error| wrong(&error));
            let locks = lock_definitions().unwrap_or_else(|error| wrong(&error));
            let counts = Counts {
                local: local.len(),
                batch: BATCH_DEFINITIONS,
                remote: remote.len(),
                external: external.len(),
                load: load.len(),
                locks: locks.len(),
            };
            let definitions = local.into_iter().chain(remote).chain(external).chain(load).chain(locks).collect();
            Self { counts, definitions, services }
        })
    }

    /// The definitions as an engine has them, with that mistake or without.
    fn definitions(&self, mutant: Option<Mutant>) -> Arc<[SimDefinition]> {
        match mutant {
            None => Arc::clone(&self.definitions),
            Some(mutant) => self.definitions.iter().map(|definition| mutated(definition, mutant)).collect(),
        }
    }

    /// What the processes of each service do, in the order of the services. A process knows the definitions of the schedule
    /// only: to register all there are takes most of the time of a schedule.
    fn roles(&self, scenario: &Scenario, definitions: &[SimDefinition]) -> Vec<(Role, u64)> {
        let has_others = !scenario.hosts.is_empty();
        let used: BTreeSet<usize> = scenario.sagas.iter().flat_map(|script| script.variants.iter().copied()).collect();
        let definitions = used.into_iter().map(|definition| definitions[definition].clone()).collect();
        let home = Role { service: 0, definitions, hosts: Vec::new(), has_others };
        let mut roles = vec![(home, scenario.replicas)];
        for (service, replicas) in (1..).zip(&scenario.hosts) {
            let is_last = usize::from(service) == scenario.hosts.len();
            let own = &self.services[usize::from(service) - 1..];
            let hosts = if is_last { own.to_vec() } else { vec![own[0].clone()] };
            roles.push((Role { service, definitions: Arc::new([]), hosts, has_others }, *replicas));
        }
        roles
    }
}

fn run_with(seed: u64, log: Option<&Log>) -> Report {
    let parts = Parts::get();
    run_scenario(Scenario::draw(seed, parts.counts), parts, log)
}

fn run_scenario(scenario: Scenario, parts: &'static Parts, log: Option<&Log>) -> Report {
    let mut executor = Executor::new(scenario.seed, scenario.poll_max);
    let limits = if scenario.retention.is_some() { LONG_LIMITS } else { LIMITS };
    begin_asking(scenario.seed);
    if let Some(log) = log {
        log.set_clock(executor.control());
    }
    let stores: Vec<MemoryStore> = (0..=scenario.hosts.len()).map(|nth| store(&executor, nth, &scenario)).collect();
    let recorder = Recorder::new(executor.control(), stores.clone());
    let books = (recorder, PurgeLog::new(stores.clone()));
    let world = Arc::new(World::new(executor.world(), executor.control(), books, scenario.clone()));
    let end = Arc::new(Mutex::new(None));
    let main = live_through(Arc::clone(&world), stores, parts, Arc::clone(&end));
    let finish = executor.run(Box::pin(main), limits);
    let end = end.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (finals, mut rest) = end.unwrap_or_default();
    rest.repeats = world.repeats.load(std::sync::atomic::Ordering::Relaxed);
    rest.panics = executor.panics().iter().map(|panicked| panicked.message.clone()).collect();
    let pace = scenario.load.as_ref().map(|load| load.pace(scenario.replicas));
    let sagas = plans(&scenario, &parts.definitions);
    let (entries, shares_tenants) = (world.recorder.take(), scenario.shares_tenants);
    let is_archived = scenario.retention.as_ref().is_some_and(|plan| plan.has_archive);
    let ledger = Ledger { sagas, entries, finals, rest, pace, shares_tenants, is_archived };
    world.hit_if(ledger.pace.is_some(), Fault::MoreThanLines);
    for (plan, end) in ledger.sagas.iter().zip(&ledger.finals) {
        match end.standing {
            Standing::Completed => world.hit(Fault::Completed),
            Standing::Compensated => world.hit(Fault::Compensated),
            _ => {}
        }
        note_hosted(&world, plan, end);
    }
    note_times(&world, &ledger);
    note_branches(&world, &ledger);
    note_restarts(&world, &ledger);
    let violations = match finish {
        Finish::Done => check(&ledger),
        // Without an end there is nothing to compare with.
        _ => vec![gave_up(finish)],
    };
    let (trace, polls) = (executor.trace(), executor.polls());
    let (time, hits) = (world.control.now(), world.hits.counts());
    Report { scenario, violations, ledger, hits, trace, polls, time }
}

/// The store of a service. Its clock shows another time than those of the others.
fn store(executor: &Executor, service: usize, scenario: &Scenario) -> MemoryStore {
    match service {
        0 => MemoryStore::with_environment(Arc::new(executor.world())),
        nth => {
            let clock = scenario.retention.as_ref().map_or(Duration::from_secs(CLOCK_SECONDS), |plan| plan.clock);
            let origin = clock * nth as u32;
            MemoryStore::with_environment(Arc::new(executor.control().process(origin)))
        }
    }
}

/// Notes what other services did.
fn note_hosted(world: &World, plan: &SagaPlan, end: &Final) {
    let variant = end.variant.and_then(|variant| plan.variants.get(usize::from(variant)));
    let step_at = |place: u8| variant.and_then(|variant| variant.steps.get(usize::from(place)));
    for told in end.told.iter().filter(|told| told.outcome == Recorded::Done) {
        world.hit(if told.op == Op::Do { Fault::HostedDone } else { Fault::HostedUndone });
        let is_item = step_at(told.step).is_some_and(|step| step.name.contains('#'));
        world.hit_if(is_item, if told.op == Op::Do { Fault::HostedItemDone } else { Fault::HostedItemUndone });
    }
}

/// Notes what became of sagas that were started instead of others.
fn note_restarts(world: &World, ledger: &Ledger) {
    let ends = world.scenario.sagas.iter().zip(&ledger.finals).filter(|(script, _)| script.restart_of.is_some());
    for (_, end) in ends {
        world.hit_if(end.standing == Standing::Compensated, Fault::RestartCompensated);
        world.hit_if(end.records.iter().any(|record| record.outcome == Recorded::Skipped), Fault::StepsTakenOver);
    }
}

fn gave_up(finish: Finish) -> Violation {
    let about = match finish {
        Finish::Deadlock => "nothing was ready, and no timer waited",
        Finish::Livelock => "tasks woke each other without end",
        Finish::Done | Finish::TimeUp => "it did not come to an end",
    };
    Violation { guarantee: Guarantee::G8, saga: None, about: about.to_owned() }
}

/// Starts what clients and operators do about retention, if sagas are not kept for ever.
fn spawn_retention_clients(
    world: &Arc<World>,
    plans: &[SagaPlan],
    starting: &Busy,
    clients: &impl Fn(u32, u8) -> Client,
) {
    let scenario = &world.scenario;
    let Some(retention) = &scenario.retention else { return };
    world.env.spawn(Box::pin(watch_purges(Arc::clone(world))));
    world.env.spawn(Box::pin(misdate(Arc::clone(world), plans.to_vec())));
    for (saga, script) in (0..).zip(&scenario.sagas).filter(|(_, script)| !script.is_foreign) {
        let happens = |rate: u32| world.draw(|random| random.per_mille(rate));
        if let Some(of) = script.reborn_of {
            world.env.spawn(starting.with(clients(saga, 0).start_when_deleted(of)));
        } else if retention.has_tombstones() && happens(retention.repeated) {
            world.env.spawn(starting.with(clients(saga, 0).repeat_at_tombstone()));
        }
        if happens(retention.exempted) {
            let plan = plans[saga as usize].clone();
            world.env.spawn(Box::pin(clients(saga, 0).exempt_for_a_while(plan, retention.clone())));
        }
    }
}

/// First everything that can go wrong, then the calm in which everything must end.
async fn live_through(
    world: Arc<World>,
    stores: Vec<MemoryStore>,
    parts: &'static Parts,
    end: Arc<Mutex<Option<End>>>,
) {
    let scenario = &world.scenario;
    let plans = plans(scenario, &parts.definitions);
    let definitions = parts.definitions(scenario.mutant);
    let mut services: Vec<Vec<Arc<Replica>>> = Vec::new();
    for ((role, replicas), store) in parts.roles(scenario, &definitions).into_iter().zip(&stores) {
        let replicas: Vec<_> = (0..replicas).map(|_| Replica::new(&world, store, role.clone())).collect();
        for replica in &replicas {
            world.env.spawn(Box::pin(Arc::clone(replica).keep_alive()));
        }
        world.env.spawn(Box::pin(operate(Arc::clone(&world), replicas.clone(), store.clone(), plans.clone())));
        services.push(replicas);
    }
    let (replicas, all) = (services[0].clone(), services.concat());
    let clients = |saga: u32, variant: u8| Client {
        world: Arc::clone(&world),
        replicas: replicas.clone(),
        definitions: Arc::clone(&definitions),
        saga,
        variant,
    };
    let (starting, disrupting) = (Busy::default(), Busy::default());
    spawn_retention_clients(&world, &plans, &starting, &clients);
    for (saga, script) in (0..).zip(&scenario.sagas) {
        for (moment, signal) in &script.signals {
            world.env.spawn(starting.with(clients(saga, 0).signal_at(*moment, *signal)));
        }
        if script.restart_of.is_some() {
            let moment = world.draw(|random| Duration::from_millis(random.below(CANCEL_WITHIN_MILLIS)));
            world.env.spawn(starting.with(clients(saga, 0).restart_at(moment)));
        }
        for (moment, variant) in &script.starts {
            if script.is_foreign {
                let step = plans[saga as usize].variants[0].steps[0].clone();
                world.env.spawn(Box::pin(ask_and_take_back(Arc::clone(&world), saga, step, *moment)));
                continue;
            }
            if world.happens(|rates| rates.client_cancels) {
                let later = world.draw(|random| Duration::from_millis(random.below(CANCEL_WITHIN_MILLIS)));
                world.env.spawn(starting.with(clients(saga, *variant).cancel_at(*moment + later)));
            }
            if world.happens(|rates| rates.moves) {
                let later = world.draw(|random| Duration::from_millis(random.below(MOVE_WITHIN_MILLIS)));
                world.env.spawn(starting.with(clients(saga, *variant).move_at(*moment + later)));
            }
            if world.happens(|rates| rates.person_pauses) {
                let later = world.draw(|random| Duration::from_millis(random.below(CANCEL_WITHIN_MILLIS)));
                world.env.spawn(starting.with(clients(saga, *variant).hold_up_at(*moment + later)));
            }
            world.env.spawn(starting.with(clients(saga, *variant).start_at(*moment)));
        }
    }
    for (moment, disruption) in &scenario.disruptions {
        world.env.spawn(disrupting.with(disrupt(Arc::clone(&world), all.clone(), *moment, *disruption)));
    }
    let busy_max = Duration::from_millis(world.draw(|random| random.between(500, 12_000)));
    let busy_max = scenario.retention.as_ref().map_or(busy_max, |retention| retention.busy);
    world.env.sleep(busy_max).await;
    while !disrupting.is_over() {
        world.env.sleep(LOOK_EVERY).await;
    }
    world.calm_down();
    if let Some(retention) = &scenario.retention {
        world.env.sleep(retention.purged_within()).await;
        world.end_purging();
    }
    let until = world.control.now() + QUIET_WITHIN;
    let is_over = async || starting.is_over() && world.broker.is_empty() && is_quiet(&stores, &world).await;
    // What a dead process had leased is not counted as waiting before its lease has ended; and what a process has still to
    // say that was paused or cut off stands nowhere but in itself.
    let has_been_away = |(_, disruption): &(Duration, Disruption)| {
        matches!(disruption, Disruption::Pause { .. } | Disruption::CutOff { .. })
    };
    let is_soon_over = scenario.hosts.is_empty() && !scenario.disruptions.iter().any(has_been_away);
    let looks = if is_soon_over { 1 } else { LEASE.as_secs() + 2 };
    let mut over_since = 0;
    while world.control.now() < until {
        over_since = if is_over().await { over_since + 1 } else { 0 };
        if over_since >= looks {
            break;
        }
        world.env.sleep(LOOK_EVERY).await;
    }
    // A repeated start gets the same answer.
    // Where it was purged meanwhile, it would be a new saga.
    let has_answers = |(_, script): &(u32, &SagaScript)| !script.is_foreign && scenario.retention.is_none();
    for (saga, script) in (0..).zip(&scenario.sagas).filter(has_answers) {
        if script.restart_of.is_some() {
            clients(saga, 0).restart_again().await;
            continue;
        }
        for variant in 0..script.variants.len() as u8 {
            let live = replicas[0].when_live().await;
            clients(saga, variant).start(&live).await;
        }
    }
    world.env.sleep(LOOK_EVERY).await;
    let (finals, mut rest) = finals(&stores, &world, &plans).await;
    // Where messages are forgotten, an old one is unknown.
    if scenario.retention.is_none() {
        rest.unknown_messages = unknown_messages(&stores, &world, world.broker.settled()).await;
    }
    *end.lock().unwrap_or_else(PoisonError::into_inner) = Some((finals, rest));
}

/// Writes down what was purged, also by a process that died before it knew.
async fn watch_purges(world: Arc<World>) {
    loop {
        world.env.sleep(PURGES_SEEN_WITHIN).await;
        world.enter_purges().await;
    }
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
