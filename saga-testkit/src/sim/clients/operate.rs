//! A person who looks after stuck sagas and parked messages.

use std::sync::Arc;
use std::time::Duration;

use saga_core::StepPhase;
use saga_core::engine::{Outcome, SagaStatus};
use saga_core::env::Environment;
use saga_core::memory::MemoryStore;
use saga_core::store::{DeadLetterFilter, Outbox, Status};

use super::bulk::act_in_bulk;
use super::rows::{Row, rows};
use crate::checker::{Act, Op, SagaPlan, Standing, What};
use crate::sim::sagas::{SimOutput, place_of, tenant_of};
use crate::sim::world::{Fault, Live, Looked, Replica, World};

/// How often the person looks.
const ROUND: Duration = Duration::from_secs(2);
/// How many parked keys are released at a time.
const PARKED_MAX: usize = 100;

/// Looks again and again after one service.
pub(crate) async fn operate(world: Arc<World>, replicas: Vec<Arc<Replica>>, store: MemoryStore, plans: Vec<SagaPlan>) {
    let mut rounds = 0;
    let Some(service) = replicas.first().map(|replica| replica.service()) else { return };
    let rows = rows(&plans, service);
    loop {
        world.env.sleep(ROUND).await;
        rounds += 1;
        for parked in store.parked(None, PARKED_MAX).await.unwrap_or_default() {
            // It may have been released meanwhile.
            let _ = store.release(parked.message).await;
        }
        let rows: Vec<Row> = rows.iter().filter(|row| world.has_its_key(row.saga)).cloned().collect();
        act_in_bulk(&world, &replicas, &rows).await;
        let replica = world.draw(|random| Arc::clone(random.pick(&replicas)));
        let Some(live) = replica.live() else { continue };
        for row in &rows {
            look_after(&world, &replicas, &live, row, rounds).await;
        }
        if !world.scenario.hosts.is_empty() {
            read_letters(&world, &live).await;
        }
    }
}

/// Hands dead letters in again, most often; some are given up, and what they asked for is asked for again.
async fn read_letters(world: &Arc<World>, live: &Live) {
    let mut tenants: Vec<_> = world.scenario.sagas.iter().map(|script| script.tenant).collect();
    tenants.sort_unstable();
    tenants.dedup();
    for tenant in tenants {
        let (is_discarding, is_waiting) = world.draw(|random| (random.per_mille(200), random.per_mille(300)));
        if is_waiting && !world.is_calm() {
            continue;
        }
        let world = Arc::clone(world);
        let asked = live.ask(move |runtime| {
            Box::pin(async move {
                let desk = runtime.tenant(tenant_of(tenant)).admin().dead_letters();
                for letter in desk.list(DeadLetterFilter::default()).await.unwrap_or_default() {
                    let id = letter.letter.id;
                    let reason = "the simulation says so";
                    if is_discarding {
                        world.hit_if(desk.discard(id, reason).await.is_ok(), Fault::LetterDiscarded);
                    } else {
                        world.hit_if(desk.replay(id, reason).await.is_ok(), Fault::LetterReplayed);
                    }
                }
            })
        });
        // A process that dies leaves the rest to the next round.
        let _ = asked.await;
    }
}

async fn look_after(world: &Arc<World>, replicas: &[Arc<Replica>], live: &Live, row: &Row, rounds: u32) {
    let saga = row.saga;
    let (tenant, key) = (tenant_of(world.scenario.sagas[saga as usize].tenant), row.key.clone());
    let status = if row.is_plain {
        match live.look_at(tenant, key).await {
            Some(Looked::Still(status)) => *status,
            Some(Looked::Sound) => return hurry(world, live, row).await,
            None => return,
        }
    } else {
        let seen = live.ask(move |runtime| Box::pin(async move { runtime.tenant(tenant).status(key).await })).await;
        let Some(Ok(Some(status))) = seen else { return };
        status
    };
    // It may have been deleted since the round began, and its key be that of another saga.
    if !world.has_its_key(saga) {
        return;
    }
    let is_stuck = status.steps.iter().any(|step| step.stuck.is_some());
    world.hit_if(is_stuck && status.summary.status == Status::Paused, Fault::StuckWhilePaused);
    if status.summary.status != Status::Stuck && !is_stuck {
        return hurry(world, live, row).await;
    }
    world.enter(What::StuckSeen { saga });
    world.hit(if row.hosted.is_some() { Fault::HostStuck } else { Fault::Stuck });
    let stuck = status.steps.iter().filter(|step| step.stuck.is_some()).count();
    world.hit_if(stuck > 1, Fault::BranchesStuck);
    let act = choose(world, row, &status, rounds);
    let first = act_and_note(world, live, row, act, status.revision);
    // Another person may look at the same moment, and want something else.
    let other = world.draw(|random| random.per_mille(400).then(|| Arc::clone(random.pick(replicas))));
    match other.and_then(|other| other.live()) {
        Some(other) => {
            let act = choose(world, row, &status, rounds);
            world.hit(Fault::OperatorsRaced);
            tokio::join!(biased; first, act_and_note(world, &other, row, act, status.revision));
        }
        None => first.await,
    }
}

/// What waits for its next attempt is tried at once, where the schedule wants it.
async fn hurry(world: &World, live: &Live, row: &Row) {
    if !world.happens(|rates| rates.person_hurries) {
        return;
    }
    let (tenant, key) = (tenant_of(world.scenario.sagas[row.saga as usize].tenant), row.key.clone());
    let hurried = live.ask(move |runtime| {
        Box::pin(async move { runtime.tenant(tenant).admin().control(key).retry_now("the simulation says so").await })
    });
    // A process that dies hurries nothing, and so does one whose store fails.
    world.hit_if(matches!(hurried.await, Some(Ok(1..))), Fault::Hurried);
}

async fn act_and_note(world: &World, live: &Live, row: &Row, act: Act, revision: u64) {
    let call = world.recorder.number();
    // The answer may come too late for the ledger, or never, and the act may have been done all the same.
    world.enter(What::AuditRecord { saga: row.saga, row: row.number(), act, call, revision });
    let is_done = act_on(world, live, row, act, revision).await;
    if let Some(is_done) = is_done {
        world.enter(What::ActAnswered { call, is_done });
    }
    if is_done == Some(true) {
        world.hit(match act {
            Act::Retry => Fault::OperatorRetried,
            Act::Skip { .. } => Fault::OperatorSkipped,
            Act::Force(_) => Fault::OperatorForced,
        });
    }
}

/// Most often it is tried again; what is stuck for long is given up.
fn choose(world: &World, row: &Row, status: &SagaStatus, rounds: u32) -> Act {
    let stuck_step = match &status.summary.outcome {
        Some(Outcome::Stuck { step, .. }) => status.steps.iter().find(|other| other.step == *step),
        _ => None,
    };
    let (draw, is_completed) = world.draw(|random| (random.below(10), random.per_mille(500)));
    let patience = if world.is_calm() { 6 } else { 8 };
    match stuck_step {
        Some(step) if draw >= patience => {
            let op = if step.phase == StepPhase::Undoing { Op::Undo } else { Op::Do };
            Act::Skip { step: row.hosted.or_else(|| place_of(&step.step)).unwrap_or(u8::MAX), op }
        }
        _ if draw == 0 && rounds > 2 => {
            Act::Force(if is_completed { Standing::Completed } else { Standing::Compensated })
        }
        _ => Act::Retry,
    }
}

/// Nothing where it is not known whether the action was accepted.
async fn act_on(world: &World, live: &Live, row: &Row, act: Act, revision: u64) -> Option<bool> {
    let (tenant, key) = (tenant_of(world.scenario.sagas[row.saga as usize].tenant), row.key.clone());
    let acted = live.ask(move |runtime| {
        Box::pin(async move {
            let operator = runtime.tenant(tenant).admin().control(key).at_revision(revision);
            let reason = "the simulation says so";
            match act {
                Act::Retry => operator.retry(reason).await,
                Act::Skip { op: Op::Undo, .. } => operator.skip(reason).await,
                Act::Skip { op: Op::Do, .. } => operator.skip_with(&SimOutput { effect: 0, call: 0 }, reason).await,
                Act::Force(Standing::Completed) => operator.force_completed(reason).await,
                Act::Force(_) => operator.force_compensated(reason).await,
            }
        })
    });
    match acted.await? {
        Ok(()) => Some(true),
        Err(saga_core::engine::RuntimeError::Store(_)) => None,
        Err(_) => Some(false),
    }
}
