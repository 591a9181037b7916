//! Acting on many sagas: a plan says what would be done, then exactly this plan is executed.

use std::num::NonZeroU32;
use std::time::Duration;

use super::admin_context::{AdminContext, not_tombstone, refused};
use super::audit::AuditEntry;
use super::batch_plan::{BatchAction, BatchFilter, BatchPlan, BatchResult, BatchSummary, PlannedAction};
use super::control::cancel::cancel;
use super::control::control_outcome::ControlOutcome;
use super::control::pause::{pause, resume};
use super::control::retry_now::retry_now;
use super::control::stuck_action::{StuckAction, act_on_stuck};
use super::saga_admin::SagaAdmin;
use crate::engine::context::{RuntimeError, outside_step, random_uuid};
use crate::engine::decide::refusal_of;
use crate::engine::message::TIMELINES;
use crate::engine::outcome::{Outcome, outcome_of};
use crate::env::{Activity, during};
use crate::key::Key;
use crate::machine::{self, Action, Refused, SagaState};
use crate::store::{HistoryKind, SagaFilter, SagaRow, Store, Timestamp};

/// How many sagas are read at a time.
const PAGE: usize = 500;

impl<S: Store> SagaAdmin<S> {
    /// Says what would be done with which sagas, and changes nothing.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    ///
    /// # Examples
    /// ```
    /// use std::num::NonZeroU32;
    ///
    /// use saga_core::engine::{BatchAction, BatchFilter};
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::store::Status;
    /// use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step]
    /// async fn welcome(_name: String) -> Result<(), StepError> {
    ///     Ok(())
    /// }
    ///
    /// /// After the pivot there is no way back, so a rejection makes the saga stuck.
    /// #[saga_step]
    /// async fn greet(name: String) -> Result<(), StepError> {
    ///     if name.is_empty() { Err(StepError::reject("it has no name")) } else { Ok(()) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let greeting = Saga::named("greeting").input::<String>().step::<welcome>().pivot().step::<greet>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&greeting).start().await?;
    /// for (key, name) in [("g-1", "Ann"), ("g-2", ""), ("g-3", "")] {
    ///     runtime.start(&greeting, key, name.to_owned()).await?.outcome().await?;
    /// }
    ///
    /// let admin = runtime.admin().actor("ann");
    /// let filter = BatchFilter { status: Some(Status::Stuck), failed_step: Some("greet".into()), ..BatchFilter::default() };
    /// let plan = admin.plan(BatchAction::Skip, &filter).await?;
    /// assert_eq!(plan.sagas.len(), 2);
    ///
    /// let per_second = NonZeroU32::new(10).ok_or("it is not zero")?;
    /// let done = admin.execute(&plan, "the guests have left", per_second, |_, _| ()).await?;
    /// assert_eq!((done.done, done.refused.len()), (2, 0));
    /// let again = admin.execute(&plan, "the guests have left", per_second, |_, _| ()).await?;
    /// assert_eq!((again.done, again.already), (0, 2));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn plan(&self, action: BatchAction, filter: &BatchFilter) -> Result<BatchPlan, RuntimeError> {
        outside_step()?;
        let id = random_uuid(&*self.ctx.decider()?.env).to_string();
        // It receives no message, and only returns the time of the store's clock.
        let now = match filter.idle_for {
            Some(_) => self.ctx.tenant_store.store.receive(Vec::new()).await?.now,
            None => Timestamp::default(),
        };
        let mut page = SagaFilter {
            tenant: self.ctx.tenant_store.tenant.clone(),
            status: filter.status,
            definition: filter.definition.clone(),
            limit: PAGE,
            ..SagaFilter::default()
        };
        let mut sagas = Vec::new();
        loop {
            let rows = self.ctx.tenant_store.store.list(&page).await?;
            // A timeline is kept as a row, and is no saga.
            for row in rows.iter().filter(|row| row.definition.name != TIMELINES.name) {
                if filter.limit.is_some_and(|limit| sagas.len() >= limit) {
                    return Ok(BatchPlan { id, action, sagas });
                }
                sagas.extend(self.planned(action, filter, row, now));
            }
            page.after = rows.last().map(|row| row.id);
            if rows.len() < PAGE {
                return Ok(BatchPlan { id, action, sagas });
            }
        }
    }

    /// Executes a plan, with at most `per_second` actions in a second. It acts on a saga only at the revision that the plan
    /// has. `progress` is called with the position of each saga in the plan and its result. An action that was done before
    /// is not done again, so the same call continues a plan that was interrupted.
    ///
    /// # Errors
    /// When the reason or the name of the actor is refused. A saga that is refused, or for which the store fails, is counted
    /// in the summary.
    ///
    /// # Cancel safety
    /// When dropped, some sagas were acted on; the same call again goes on with the rest.
    pub async fn execute(
        &self,
        plan: &BatchPlan,
        reason: &str,
        per_second: NonZeroU32,
        mut progress: impl FnMut(usize, &BatchResult) + Send,
    ) -> Result<BatchSummary, RuntimeError> {
        outside_step()?;
        let ctx = AdminContext { plan: Some(plan.id.clone()), ..self.ctx.clone() };
        if let Some(problem) = ctx.audit_entry("in bulk", reason).problem() {
            return Err(RuntimeError::Plan(problem));
        }
        let env = std::sync::Arc::clone(&self.ctx.decider()?.env);
        let (began, each) = (env.now(), Duration::from_secs(1) / per_second.get());
        let mut summary = BatchSummary::default();
        let mut acts = 0;
        for (place, planned) in plan.sagas.iter().enumerate() {
            let due = began.saturating_add(each.saturating_mul(acts));
            during(&*env, Activity::Waiting, env.sleep(due.saturating_sub(env.now()))).await;
            let result = act_on(&ctx, plan, planned, reason).await;
            progress(place, &result);
            match result {
                BatchResult::Done => {
                    acts += 1;
                    summary.done += 1;
                }
                BatchResult::Already => summary.already += 1,
                BatchResult::Refused(why) => summary.refused.push((planned.key.clone(), why)),
                BatchResult::Failed(why) => {
                    acts += 1;
                    summary.failed.push((planned.key.clone(), why));
                }
            }
        }
        Ok(summary)
    }

    fn planned(
        &self,
        action: BatchAction,
        filter: &BatchFilter,
        row: &SagaRow,
        now: Timestamp,
    ) -> Option<PlannedAction> {
        let known = not_tombstone(row).and_then(|()| self.ctx.definition_of(row));
        let found = known.map_err(|error| error.to_string()).and_then(|definition| {
            let state = SagaState::decode(&row.state, definition.steps.len())?;
            Ok((definition, state))
        });
        let (step, reason) = match &found {
            Ok((definition, state)) => trouble_of(&definition.shape, state).unzip(),
            Err(_) => (None, None),
        };
        let refusal = match found {
            Err(problem) => Some(problem),
            Ok((definition, state)) => action.event().and_then(|event| refusal_of(definition, state, event)),
        };
        let is_wanted = |wanted: &Option<String>, is: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(is);
        let passes = is_wanted(&filter.failed_step, &|wanted| step.as_deref() == Some(wanted))
            && is_wanted(&filter.reason, &|wanted| reason.as_deref().is_some_and(|reason| reason.contains(wanted)))
            && filter.idle_for.is_none_or(|age| idle_for(row, now) >= age);
        passes.then(|| PlannedAction { step, reason, refusal, ..PlannedAction::on(row) })
    }
}

async fn act_on<S: Store>(
    ctx: &AdminContext<S>,
    plan: &BatchPlan,
    planned: &PlannedAction,
    reason: &str,
) -> BatchResult {
    // Retrying at once does not move a saga, so only its history tells that it was done.
    if plan.action == BatchAction::RetryNow && was_acted_on(ctx, plan, planned).await.is_ok_and(|was| was) {
        return BatchResult::Already;
    }
    match act_once(ctx, plan.action, planned, reason).await {
        Ok(()) => BatchResult::Done,
        Err(RuntimeError::Store(error)) => BatchResult::Failed(error.to_string()),
        Err(error) => match was_acted_on(ctx, plan, planned).await {
            Ok(true) => BatchResult::Already,
            Ok(false) => BatchResult::Refused(error.to_string()),
            Err(error) => BatchResult::Failed(error.to_string()),
        },
    }
}

/// Acts on a saga that is still at the planned revision. A saga that the action does not fit is an error.
async fn act_once<S: Store>(
    ctx: &AdminContext<S>,
    action: BatchAction,
    planned: &PlannedAction,
    reason: &str,
) -> Result<(), RuntimeError> {
    let key = Key::from_stored(&planned.key)?;
    let seen = Some(planned.revision);
    let refusal = match action {
        BatchAction::Retry => return act_on_stuck(ctx, &key, seen, StuckAction::of(Action::Retry), reason).await,
        BatchAction::Skip => return act_on_stuck(ctx, &key, seen, StuckAction::of(Action::Skip), reason).await,
        BatchAction::ForceCompleted => {
            return act_on_stuck(ctx, &key, seen, StuckAction::force(true, reason), reason).await;
        }
        BatchAction::ForceCompensated => {
            return act_on_stuck(ctx, &key, seen, StuckAction::force(false, reason), reason).await;
        }
        BatchAction::RetryNow => match retry_now(ctx, &key, seen, reason).await? {
            0 => return Err(refused(&key, "nothing of it waits for its next attempt")),
            _ => return Ok(()),
        },
        BatchAction::Cancel => match cancel(ctx, &key, seen, reason).await? {
            ControlOutcome::Applied => return Ok(()),
            ControlOutcome::Already => Refused::Compensating,
            ControlOutcome::Ended(_) => Refused::Ended,
        },
        BatchAction::Pause => match pause(ctx, &key, seen, reason).await? {
            ControlOutcome::Applied => return Ok(()),
            ControlOutcome::Already => Refused::Paused,
            ControlOutcome::Ended(_) => Refused::Ended,
        },
        BatchAction::Resume => match resume(ctx, &key, seen, reason).await? {
            ControlOutcome::Applied => return Ok(()),
            ControlOutcome::Already => Refused::NotPaused,
            ControlOutcome::Ended(_) => Refused::Ended,
        },
    };
    Err(refused(&key, refusal.to_string()))
}

/// Whether this plan acted on the saga already.
async fn was_acted_on<S: Store>(
    ctx: &AdminContext<S>,
    plan: &BatchPlan,
    planned: &PlannedAction,
) -> Result<bool, RuntimeError> {
    let key = Key::from_stored(&planned.key)?;
    let stored = match ctx.stored(&key, None).await {
        Err(RuntimeError::NoSaga(_)) => return Ok(false),
        stored => stored?,
    };
    let acts = stored.history.iter().filter(|(_, entry)| entry.kind == HistoryKind::Operator);
    Ok(acts.map(|(_, entry)| AuditEntry::read(&entry.detail)).any(|act| act.plan.as_deref() == Some(&*plan.id)))
}

fn idle_for(row: &SagaRow, now: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now.0 - row.advanced_at.0).unwrap_or_default())
}

/// The step that a saga is stuck at, or that failed, and why.
fn trouble_of(shape: &machine::Shape, state: &SagaState) -> Option<(String, String)> {
    match outcome_of(shape, state) {
        Some(Outcome::Stuck { step, reason }) => Some((step, reason)),
        Some(Outcome::Compensated { failed_step, reason, .. }) => Some((failed_step, reason.to_string())),
        Some(Outcome::Completed { .. } | Outcome::Tombstone { .. }) => None,
        None => state
            .failure
            .as_ref()
            .map(|failure| (shape.of(state, failure.step).name.to_owned(), failure.reason.message().to_owned())),
    }
}
