//! A person who looks after stuck sagas and parked messages.

use std::sync::Arc;
use std::time::Duration;

use saga_core::engine::{Outcome, SagaStatus};
use saga_core::env::Environment;
use saga_core::machine::StepPhase;
use saga_core::memory::MemoryStore;
use saga_core::store::{Outbox, Status};

use super::Fault;
use super::client::tenant_of;
use super::replica::{Live, Replica};
use super::steps::SimOutput;
use super::world::World;
use crate::checker::{Act, Op, Standing, What};

/// How often the person looks.
const ROUND: Duration = Duration::from_secs(2);
/// How many parked keys are released at a time.
const PARKED_MAX: usize = 100;

/// Looks again and again.
pub(crate) async fn operate(world: Arc<World>, replicas: Vec<Arc<Replica>>, store: MemoryStore) {
    let mut rounds = 0;
    loop {
        world.env.sleep(ROUND).await;
        rounds += 1;
        for parked in store.parked(PARKED_MAX).await.unwrap_or_default() {
            // It may have been released meanwhile.
            let _ = store.release(parked.message).await;
        }
        let replica = world.draw(|random| Arc::clone(random.pick(&replicas)));
        let Some(live) = replica.live() else { continue };
        for saga in 0..world.scenario.sagas.len() as u32 {
            look_after(&world, &replicas, &live, saga, rounds).await;
        }
    }
}

async fn look_after(world: &Arc<World>, replicas: &[Arc<Replica>], live: &Live, saga: u32, rounds: u32) {
    let script = &world.scenario.sagas[saga as usize];
    let (tenant, key) = (tenant_of(script.tenant), script.key.clone());
    let seen = live.ask(move |runtime| Box::pin(async move { runtime.tenant(tenant).saga(key).await })).await;
    let Some(Ok(Some(status))) = seen else { return };
    if status.summary.status != Status::Stuck {
        return;
    }
    world.enter(What::StuckSeen { saga });
    world.hit(Fault::Stuck);
    let act = choose(world, &status, rounds);
    let first = act_and_note(world, live, saga, act, status.revision);
    // Another person may look at the same moment, and want something else.
    let other = world.draw(|random| random.per_mille(400).then(|| Arc::clone(random.pick(replicas))));
    match other.and_then(|other| other.live()) {
        Some(other) => {
            let act = choose(world, &status, rounds);
            world.hit(Fault::OperatorsRaced);
            tokio::join!(biased; first, act_and_note(world, &other, saga, act, status.revision));
        }
        None => first.await,
    }
}

async fn act_and_note(world: &World, live: &Live, saga: u32, act: Act, revision: u64) {
    let call = world.recorder.number();
    // The answer may come too late for the ledger, or never, and the act may have been done all the same.
    world.enter(What::Acted { saga, act, call, revision });
    let is_done = act_on(world, live, saga, act, revision).await;
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
fn choose(world: &World, status: &SagaStatus, rounds: u32) -> Act {
    let stuck_step = match &status.summary.outcome {
        Some(Outcome::Stuck { step, .. }) => status.steps.iter().position(|other| other.step == *step),
        _ => None,
    };
    let (draw, is_completed) = world.draw(|random| (random.below(10), random.per_mille(500)));
    let patience = if world.is_calm() { 6 } else { 8 };
    match stuck_step {
        Some(step) if draw >= patience => {
            let is_undo = status.steps[step].phase == StepPhase::Undoing;
            let op = if is_undo { Op::Undo } else { Op::Do };
            Act::Skip { step: step as u8, op }
        }
        _ if draw == 0 && rounds > 2 => {
            Act::Force(if is_completed { Standing::Completed } else { Standing::Compensated })
        }
        _ => Act::Retry,
    }
}

/// Nothing where it is not known whether the action was accepted.
async fn act_on(world: &World, live: &Live, saga: u32, act: Act, revision: u64) -> Option<bool> {
    let script = &world.scenario.sagas[saga as usize];
    let (tenant, key) = (tenant_of(script.tenant), script.key.clone());
    let acted = live.ask(move |runtime| {
        Box::pin(async move {
            let operator = runtime.tenant(tenant).operator(key, revision)?;
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
