//! A person who acts on many sagas at once, by a plan.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use saga_core::StepPhase;
use saga_core::engine::{BatchAction, BatchFilter, BatchPlan, BatchResult};
use saga_core::store::Status;

use super::rows::Row;
use crate::checker::{Act, Op, Standing, What};
use crate::sim::sagas::{place_of, tenant_of};
use crate::sim::world::{Fault, Live, Replica, World};

/// What is done with the sagas of the first service, and with the steps that others host. What is wanted more often stands
/// here more often.
const OWN: &[BatchAction] = &[
    BatchAction::Retry,
    BatchAction::Retry,
    BatchAction::RetryNow,
    BatchAction::Skip,
    BatchAction::ForceCompleted,
    BatchAction::ForceCompensated,
    BatchAction::Cancel,
    BatchAction::Pause,
    BatchAction::Pause,
    BatchAction::Resume,
    BatchAction::Resume,
];
const HOSTED: &[BatchAction] =
    &[BatchAction::Retry, BatchAction::RetryNow, BatchAction::Skip, BatchAction::ForceCompleted];
/// How many are acted on a second.
const RATES: &[u32] = &[2, 20, 1_000];
/// How long a plan lies before it is carried out, at most.
const LIES_MAX: Duration = Duration::from_secs(2);
/// How often a plan is carried out that was interrupted.
const TURNS_MAX: usize = 4;
const WHY: &str = "the simulation says so";

/// What the person wants of the sagas of one tenant.
#[derive(Debug, Clone, Copy)]
struct Wish {
    action: BatchAction,
    tenant: &'static str,
    /// Whether the faults have ended: then all of them are acted on.
    is_over: bool,
}

/// A plan, and what the ledger is told of it.
struct Bulk {
    world: Arc<World>,
    plan: BatchPlan,
    acts: Vec<Told>,
    seen: Mutex<Vec<Seen>>,
}

/// What the ledger is told of one act of a plan.
#[derive(Debug, Clone, Copy)]
struct Told {
    saga: u32,
    row: u8,
    /// The number of the act.
    call: u64,
    /// What an operator does with a stuck saga, where it is that.
    act: Option<Act>,
}

/// What became of one act so far.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    refused: usize,
    is_done: bool,
}

/// Acts on many, where the schedule wants it. When nothing is disturbed any more, every paused saga is resumed, of all tenants.
pub(crate) async fn act_in_bulk(world: &Arc<World>, replicas: &[Arc<Replica>], rows: &[Row]) {
    let is_over = world.is_calm() && world.scenario.rates.person_bulk > 0;
    if rows.is_empty() || !(is_over || world.happens(|rates| rates.person_bulk)) {
        return;
    }
    let Some(live) = anyone(world, replicas) else { return };
    let is_hosted = rows.iter().any(|row| row.hosted.is_some());
    if is_over && is_hosted {
        return;
    }
    if is_over {
        let tenants: BTreeSet<_> = rows.iter().map(|row| tenant_of_row(world, row)).collect();
        for tenant in tenants {
            let wish = Wish { action: BatchAction::Resume, tenant, is_over };
            act_on_tenant(world, replicas, &live, rows, wish).await;
        }
        return;
    }
    let action = world.draw(|random| *random.pick(if is_hosted { HOSTED } else { OWN }));
    let tenant = world.draw(|random| tenant_of_row(world, random.pick(rows)));
    act_on_tenant(world, replicas, &live, rows, Wish { action, tenant, is_over }).await;
}

async fn act_on_tenant(world: &Arc<World>, replicas: &[Arc<Replica>], live: &Live, rows: &[Row], wish: Wish) {
    let Some(bulk) = plan(world, live, rows, wish).await else { return };
    if world.draw(|random| random.per_mille(500)) && !wish.is_over {
        world.wait_up_to(LIES_MAX).await;
    }
    bulk.begin();
    let mut turns = 0;
    for _ in 0..TURNS_MAX {
        let Some(live) = anyone(world, replicas) else { break };
        let other = world.draw(|random| random.per_mille(300)).then(|| anyone(world, replicas)).flatten();
        let is_carried_out = if let Some(other) = other {
            turns += 2;
            let both = tokio::join!(biased; bulk.execute(&live), bulk.execute(&other));
            both.0 && both.1
        } else {
            turns += 1;
            bulk.execute(&live).await
        };
        if is_carried_out && world.draw(|random| random.per_mille(700)) {
            break;
        }
    }
    bulk.end(turns);
}

fn tenant_of_row(world: &World, row: &Row) -> &'static str {
    world.scenario.sagas[row.saga as usize].tenant
}

fn anyone(world: &World, replicas: &[Arc<Replica>]) -> Option<Live> {
    world.draw(|random| Arc::clone(random.pick(replicas))).live()
}

/// A plan that a person has looked through.
async fn plan(
    world: &Arc<World>,
    live: &Live,
    rows: &[Row],
    Wish { action, tenant: of, is_over }: Wish,
) -> Option<Arc<Bulk>> {
    let is_of_stuck = matches!(
        action,
        BatchAction::Retry | BatchAction::Skip | BatchAction::ForceCompleted | BatchAction::ForceCompensated
    );
    let (is_picky, limit) = world.draw(|random| (random.per_mille(800), random.between(1, 8) as usize));
    let status = match action {
        BatchAction::Resume if is_picky || is_over => Some(Status::Paused),
        _ if is_of_stuck && is_picky => Some(Status::Stuck),
        _ => None,
    };
    let filter = BatchFilter { status, limit: (!is_over).then_some(limit), ..BatchFilter::default() };
    let planned = live
        .ask(move |runtime| Box::pin(async move { runtime.tenant(tenant_of(of)).admin().plan(action, &filter).await }));
    let mut plan = planned.await?.ok()?;
    let mut acts = Vec::new();
    let mut kept = Vec::new();
    for planned in std::mem::take(&mut plan.sagas) {
        let Some(row) = rows.iter().find(|row| row.key == planned.key && tenant_of_row(world, row) == of) else {
            continue;
        };
        let act = match action {
            BatchAction::Retry => Some(Act::Retry),
            BatchAction::ForceCompleted => Some(Act::Force(Standing::Completed)),
            BatchAction::ForceCompensated => Some(Act::Force(Standing::Compensated)),
            BatchAction::Skip => {
                let Some(skip) = skip(live, of, row, planned.step.as_deref()).await else { continue };
                Some(skip)
            }
            _ => None,
        };
        // Its key may be that of another saga by now.
        if !world.has_its_key(row.saga) {
            continue;
        }
        acts.push(Told { saga: row.saga, row: row.number(), call: world.recorder.number(), act });
        kept.push(planned);
    }
    plan.sagas = kept;
    let seen = Mutex::new(vec![Seen::default(); acts.len()]);
    (!acts.is_empty()).then(|| Arc::new(Bulk { world: Arc::clone(world), plan, acts, seen }))
}

/// What it would be to skip what that row is stuck at. Who cannot look leaves it out of the plan.
async fn skip(live: &Live, of: &'static str, row: &Row, step: Option<&str>) -> Option<Act> {
    let key = row.key.clone();
    let seen = live.ask(move |runtime| Box::pin(async move { runtime.tenant(tenant_of(of)).status(key).await }));
    let status = seen.await?.ok()??;
    let stuck = status.steps.iter().find(|other| Some(other.step.as_str()) == step)?;
    let op = if stuck.phase == StepPhase::Undoing { Op::Undo } else { Op::Do };
    Some(Act::Skip { step: row.hosted.or_else(|| place_of(&stuck.step)).unwrap_or(u8::MAX), op })
}

impl Bulk {
    /// Writes down what is about to be done: whether an answer comes or not, it may be done from here on.
    fn begin(&self) {
        for (told, planned) in self.acts.iter().zip(&self.plan.sagas) {
            let Told { saga, row, call, act } = *told;
            let what = match (act, self.plan.action) {
                (Some(act), _) => What::AuditRecord { saga, row, act, call, revision: planned.revision },
                (None, BatchAction::Cancel) => What::CancelCalled { call, saga },
                (None, BatchAction::Pause) => What::PauseCalled { call, saga },
                (None, BatchAction::Resume) => What::ResumeCalled { call, saga },
                (None, _) => continue,
            };
            self.world.enter(what);
        }
    }

    /// Carries the plan out; says whether nothing is left to be done.
    async fn execute(self: &Arc<Self>, live: &Live) -> bool {
        let per_second = self.world.draw(|random| *random.pick(RATES));
        let Some(per_second) = NonZeroU32::new(per_second) else { return false };
        let (bulk, of) = (Arc::clone(self), self.world.scenario.sagas[self.acts[0].saga as usize].tenant);
        let asked = live.ask(move |runtime| {
            Box::pin(async move {
                let desk = runtime.tenant(tenant_of(of)).admin();
                desk.execute(&bulk.plan, WHY, per_second, |place, result| bulk.note(place, result)).await
            })
        });
        match asked.await {
            Some(Ok(summary)) => summary.failed.is_empty(),
            Some(Err(_)) => false,
            None => {
                self.world.hit(Fault::BulkInterrupted);
                false
            }
        }
    }

    fn note(&self, place: usize, result: &BatchResult) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            BatchResult::Done => {
                seen[place].is_done = true;
                self.world.hit(Fault::ActedInBulk);
                self.enter_done(self.acts[place]);
            }
            BatchResult::Already => self.world.hit(Fault::BulkKnown),
            BatchResult::Refused(_) => {
                seen[place].refused += 1;
                self.world.hit(Fault::BulkRefused);
            }
            _ => {}
        }
    }

    fn enter_done(&self, Told { call, act, .. }: Told) {
        match (act, self.plan.action) {
            (Some(_), _) => self.world.enter(What::ActAnswered { call, is_done: true }),
            (None, BatchAction::Cancel) => self.world.enter(What::CancelAnswered { call, is_turned: true }),
            (None, BatchAction::Pause) => self.world.enter(What::PauseAnswered { call, is_paused: true }),
            (None, _) => {}
        }
    }

    /// Writes down what was certainly not done, when it was tried so often.
    fn end(&self, turns: usize) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (Told { call, act, .. }, seen) in self.acts.iter().zip(&*seen) {
            let (call, is_refused) = (*call, seen.refused == turns);
            let what = match (act, self.plan.action) {
                (Some(_), _) if is_refused => What::ActAnswered { call, is_done: false },
                (None, BatchAction::Cancel) if is_refused => What::CancelAnswered { call, is_turned: false },
                (None, BatchAction::Resume) if is_refused || seen.is_done => What::ResumeAnswered { call },
                _ => continue,
            };
            self.world.enter(what);
        }
    }
}
