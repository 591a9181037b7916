//! Runs a schedule by its seed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use saga_core::memory::MemoryStore;

use super::course::live_through;
use super::parts::Parts;
use super::report::Report;
use crate::checker::{Final, Guarantee, Ledger, Op, Recorded, SagaPlan, Standing, Violation, check};
use crate::sim::executor::{Executor, Finish, Limits};
use crate::sim::results::{Log, note_branches, note_times, plans};
use crate::sim::sagas::begin_asking;
use crate::sim::schedule::{Mutant, Scenario};
use crate::sim::world::{Fault, PurgeLog, Recorder, World};

/// When a schedule is given up: far beyond what any of them needs.
const LIMITS: Limits = Limits { polls: 400_000, polls_without_time: 20_000, time: Duration::from_mins(10) };
/// The same where ended sagas are purged, which takes longer.
const LONG_LIMITS: Limits = Limits { polls: 8_000_000, polls_without_time: 20_000, time: Duration::from_hours(1) };
/// By how much the clocks of two services differ.
const CLOCK_SECONDS: u64 = 700;

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
