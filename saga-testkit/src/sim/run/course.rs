//! The course of a schedule: first everything that can go wrong, then the calm in which everything must end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use saga_core::env::Environment;
use saga_core::memory::MemoryStore;

use super::parts::Parts;
use crate::checker::{Final, Rest, SagaPlan};
use crate::sim::clients::{Client, ask_and_take_back, operate};
use crate::sim::results::{finals, is_quiet, plans, unknown_messages};
use crate::sim::schedule::{Disruption, SagaScript};
use crate::sim::world::{LEASE, Replica, World, disrupt, misdate};

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

/// How everything stands in the end.
pub(super) type End = (Vec<Final>, Rest);

/// First everything that can go wrong, then the calm in which everything must end.
pub(super) async fn live_through(
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
