//! Acting on many sagas: first a plan that says what would be done, then the plan, and nothing else, is carried out.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::audit::AuditEntry;
use super::saga_admin::SagaAdmin;
use crate::engine::context::{RuntimeError, outside_step, random_uuid};
use crate::engine::decide::refusal_of;
use crate::engine::message::TIMELINES;
use crate::engine::outcome::{Outcome, outcome_of};
use crate::key::Key;
use crate::machine::{self, Action, Event, SagaState};
use crate::step::Rejection;
use crate::store::{HistoryKind, SagaFilter, SagaRow, Status, Store, Timestamp};

/// How many sagas are read at a time.
const PAGE: usize = 500;

/// Which sagas are acted on. Everything that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct BatchFilter {
    /// Those of this status.
    pub status: Option<Status>,
    /// Those of definitions with this name.
    pub definition: Option<String>,
    /// Those that are stuck at this step, or compensate or were compensated because of it.
    pub failed_step: Option<String>,
    /// Those that are stuck, or compensate, for a reason in which this text stands.
    pub reason: Option<String>,
    /// Those that have not moved for at least so long.
    pub idle_for: Option<Duration>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// What is done with each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BatchAction {
    /// Try again what is stuck.
    Retry,
    /// Try at once what waits for its next attempt.
    RetryNow,
    /// Go past what is stuck.
    Skip,
    /// End it as completed, as it is.
    ForceCompleted,
    /// End it as compensated, as it is.
    ForceCompensated,
    /// Cancel it.
    Cancel,
    /// Pause it.
    Pause,
    /// Let it go on.
    Resume,
}

/// A plan as the operator saw it. It can be serialized, reviewed, shortened, and executed later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchPlan {
    /// The plan's own id, which each act of it names.
    pub id: String,
    /// What is done.
    pub action: BatchAction,
    /// With which sagas.
    pub sagas: Vec<PlannedAction>,
}

/// What would be done with one saga.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlannedAction {
    /// The saga's key.
    pub key: String,
    /// As it was seen. It is acted on only if it still stands so.
    pub revision: u64,
    /// Where it stood.
    pub status: Status,
    /// The step that it is stuck at, or that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Why it is stuck, or compensates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why the action would be refused, where that is known already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// What became of one saga of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchResult {
    /// It was acted on by this call.
    Done,
    /// It was acted on when the plan was carried out before.
    Already,
    /// It was not: it moved since, or the action does not fit it.
    Refused(String),
    /// The store failed; carry the plan out again.
    Failed(String),
}

/// What became of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchSummary {
    /// How many were acted on by this call.
    pub done: usize,
    /// How many had been acted on before.
    pub already: usize,
    /// The keys of those that were not, and why.
    pub refused: Vec<(String, String)>,
    /// The keys of those where the store failed, and how.
    pub failed: Vec<(String, String)>,
}

impl BatchAction {
    /// Every action.
    pub const ALL: [Self; 8] = [
        Self::Retry,
        Self::RetryNow,
        Self::Skip,
        Self::ForceCompleted,
        Self::ForceCompensated,
        Self::Cancel,
        Self::Pause,
        Self::Resume,
    ];

    /// What the machine would be told.
    fn event(self) -> Option<Event> {
        let force = |completed| Event::Operator(Action::Force { completed, reason: String::new() });
        Some(match self {
            Self::Retry => Event::Operator(Action::Retry),
            Self::RetryNow => return None,
            Self::Skip => Event::Operator(Action::Skip),
            Self::ForceCompleted => force(true),
            Self::ForceCompensated => force(false),
            Self::Cancel => Event::CancelRequested { reason: Rejection::new(""), has_begun: true },
            Self::Pause => Event::Paused { by: None, reason: String::new() },
            Self::Resume => Event::Resumed,
        })
    }
}

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
    /// /// It stands behind the pivot: there is no way back, so a rejection needs a person.
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
    /// let desk = runtime.admin().actor("ann");
    /// let filter = BatchFilter { status: Some(Status::Stuck), failed_step: Some("greet".into()), ..BatchFilter::default() };
    /// let plan = desk.plan(BatchAction::Skip, &filter).await?;
    /// assert_eq!(plan.sagas.len(), 2);
    ///
    /// let per_second = NonZeroU32::new(10).ok_or("it is not zero")?;
    /// let done = desk.execute(&plan, "the guests have left", per_second, |_, _| ()).await?;
    /// assert_eq!((done.done, done.refused.len()), (2, 0));
    /// let again = desk.execute(&plan, "the guests have left", per_second, |_, _| ()).await?;
    /// assert_eq!((again.done, again.already), (0, 2));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn plan(&self, action: BatchAction, filter: &BatchFilter) -> Result<BatchPlan, RuntimeError> {
        outside_step()?;
        let id = random_uuid(&*self.decider()?.env).to_string();
        // Nothing is received by that: it only tells the time of the store's clock.
        let now = match filter.idle_for {
            Some(_) => self.desk.store.receive(Vec::new()).await?.now,
            None => Timestamp::default(),
        };
        let mut page = SagaFilter {
            tenant: self.desk.tenant.clone(),
            status: filter.status,
            definition: filter.definition.clone(),
            after: None,
            limit: PAGE,
        };
        let mut sagas = Vec::new();
        loop {
            let rows = self.desk.store.list(&page).await?;
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

    /// Carries a plan out, so many acts a second at most. Each saga is acted on only if it still stands as it was seen. What
    /// became of each is told to `progress` with the place of the saga in the plan; what was done before is not done again,
    /// so that a plan that was interrupted is carried out by the same call.
    ///
    /// # Errors
    /// When the reason or the name of who acts is none. What is refused, and what fails in the store, is counted.
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
        let desk = self.clone().carrying_out(&plan.id);
        if let Some(problem) = desk.act("in bulk", reason).problem() {
            return Err(RuntimeError::Plan(problem));
        }
        let env = std::sync::Arc::clone(&self.decider()?.env);
        let (began, each) = (env.now(), Duration::from_secs(1) / per_second.get());
        let mut summary = BatchSummary::default();
        let mut acts = 0;
        for (place, planned) in plan.sagas.iter().enumerate() {
            let due = began.saturating_add(each.saturating_mul(acts));
            env.sleep(due.saturating_sub(env.now())).await;
            let result = desk.act_on(plan, planned, reason).await;
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
        let found = self.definition_of(row).map_err(|error| error.to_string()).and_then(|definition| {
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
        let (key, revision, status) = (row.key.to_string(), row.version, row.status);
        passes.then_some(PlannedAction { key, revision, status, step, reason, refusal })
    }

    async fn act_on(&self, plan: &BatchPlan, planned: &PlannedAction, reason: &str) -> BatchResult {
        // Hurrying does not move a saga, so that only its history tells that it was done.
        if plan.action == BatchAction::RetryNow && self.was_acted_on(plan, planned).await.is_ok_and(|was| was) {
            return BatchResult::Already;
        }
        let acted = match self.operator(&planned.key, planned.revision) {
            Err(error) => Err(error),
            Ok(operator) => match plan.action {
                BatchAction::Retry => operator.retry(reason).await,
                BatchAction::RetryNow => operator.retry_now(reason).await.and_then(|count| match count {
                    0 => Err(operator.refused("nothing of it waits for its next attempt".to_owned())),
                    _ => Ok(()),
                }),
                BatchAction::Skip => operator.skip(reason).await,
                BatchAction::ForceCompleted => operator.force_completed(reason).await,
                BatchAction::ForceCompensated => operator.force_compensated(reason).await,
                BatchAction::Cancel => operator.cancel(reason).await,
                BatchAction::Pause => operator.pause(reason).await,
                BatchAction::Resume => operator.resume(reason).await,
            },
        };
        match acted {
            Ok(()) => BatchResult::Done,
            Err(RuntimeError::Store(error)) => BatchResult::Failed(error.to_string()),
            Err(error) => match self.was_acted_on(plan, planned).await {
                Ok(true) => BatchResult::Already,
                Ok(false) => BatchResult::Refused(error.to_string()),
                Err(error) => BatchResult::Failed(error.to_string()),
            },
        }
    }

    /// Whether the saga moved by this very plan.
    async fn was_acted_on(&self, plan: &BatchPlan, planned: &PlannedAction) -> Result<bool, RuntimeError> {
        let key = Key::from_stored(&planned.key)?;
        let stored = match self.stored(&key, None).await {
            Err(RuntimeError::NoSaga(_)) => return Ok(false),
            stored => stored?,
        };
        let acts = stored.history.iter().filter(|(_, entry)| entry.kind == HistoryKind::Operator);
        Ok(acts.map(|(_, entry)| AuditEntry::read(&entry.detail)).any(|act| act.plan.as_deref() == Some(&*plan.id)))
    }
}

fn idle_for(row: &SagaRow, now: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now.0 - row.advanced_at.0).unwrap_or_default())
}

/// The step that a saga is stuck at, or that failed, and why.
fn trouble_of(shape: &machine::Shape, state: &SagaState) -> Option<(String, String)> {
    match outcome_of(shape, state) {
        Some(Outcome::Stuck { step, reason }) => Some((step, reason)),
        Some(Outcome::Compensated { failed_step, reason, .. }) => Some((failed_step, reason.to_string())),
        Some(Outcome::Completed { .. }) => None,
        None => state
            .failure
            .as_ref()
            .map(|failure| (shape.of(state, failure.step).name.to_owned(), failure.reason.message().to_owned())),
    }
}
