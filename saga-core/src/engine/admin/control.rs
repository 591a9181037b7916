//! What a person can do with a saga, stuck or not.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::due_now::due_now;
use super::saga_admin::{SagaAdmin, moved, refused};
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::decide::arm_output;
use crate::engine::instance::{AttemptDetails, SagaInstance};
use crate::key::Key;
use crate::machine::{Action, Event, StepPhase, Stuck};
use crate::store::{Miss, SagaWithSteps, Status, Store};

/// An operator's view of one saga. Every action names the revision that the operator saw, so that one which
/// meets a saga that has moved changes nothing, and the same action twice acts once. Each leaves a line in the saga's
/// history.
pub struct SagaControl<S: Store> {
    pub(crate) desk: SagaAdmin<S>,
    pub(crate) key: Key,
    pub(crate) revision: u64,
}

impl<S: Store> SagaControl<S> {
    pub(crate) fn new(desk: SagaAdmin<S>, key: Key, revision: u64) -> Self {
        Self { desk, key, revision }
    }

    /// Says who acts. The name is kept with each action.
    #[must_use]
    pub fn actor(self, who: impl Into<String>) -> Self {
        Self { desk: self.desk.actor(who), ..self }
    }

    /// Tries again what is stuck, with fresh attempts and the same key.
    ///
    /// # Errors
    /// When the saga moved, is not stuck, or is not known here, or when the store fails.
    ///
    /// # Cancel safety
    /// When dropped, the action was done whole or not at all; do it again with the same revision to be sure.
    pub async fn retry(&self, reason: &str) -> Result<(), RuntimeError> {
        self.act(Action::Retry, None, reason).await
    }

    /// Skips what is stuck. A skipped step counts as done without an effect. A skipped undo leaves the effect as it
    /// is.
    ///
    /// If the stuck reason says that the outcome of the step is unknown, a call of it may still take effect. The saga
    /// undoes that effect only if the late success is reported.
    ///
    /// # Errors
    /// Those of [`SagaControl::retry`], and when a later step needs the output of the skipped one: then use
    /// [`SagaControl::skip_with`].
    ///
    /// # Cancel safety
    /// That of [`SagaControl::retry`].
    pub async fn skip(&self, reason: &str) -> Result<(), RuntimeError> {
        self.act(Action::Skip, None, reason).await
    }

    /// Skips a stuck step and supplies the output that later steps take. For a choice, the output is the name of the
    /// arm that runs; a choice that is skipped without an output runs no arm.
    ///
    /// # Errors
    /// Those of [`SagaControl::retry`], and when the output cannot be encoded.
    ///
    /// # Cancel safety
    /// That of [`SagaControl::retry`].
    pub async fn skip_with<T: Serialize + Sync>(&self, output: &T, reason: &str) -> Result<(), RuntimeError> {
        let output = serde_json::to_vec(output).map_err(|error| self.refused(format!("the output: {error}")))?;
        let output = self.desk.decider()?.check_length(output).map_err(|problem| self.refused(problem))?;
        self.act(Action::Skip, Some(output), reason).await
    }

    /// Ends the saga as completed, in its present state.
    ///
    /// # Errors
    /// Those of [`SagaControl::retry`].
    ///
    /// # Cancel safety
    /// That of [`SagaControl::retry`].
    pub async fn force_completed(&self, reason: &str) -> Result<(), RuntimeError> {
        self.act(Action::Force { completed: true, reason: reason.to_owned() }, None, reason).await
    }

    /// Ends the saga as compensated, in its present state.
    ///
    /// # Errors
    /// Those of [`SagaControl::retry`].
    ///
    /// # Cancel safety
    /// That of [`SagaControl::retry`].
    pub async fn force_compensated(&self, reason: &str) -> Result<(), RuntimeError> {
        self.act(Action::Force { completed: false, reason: reason.to_owned() }, None, reason).await
    }

    /// Cancels the saga, stuck or not, as [`Runtime::cancel`](crate::Runtime::cancel) does: it starts compensating. A
    /// stuck saga stays stuck until an operator has decided about its stuck steps.
    ///
    /// # Errors
    /// When the saga moved, compensates or has ended already, is past its pivot, belongs to a saga of another service, or
    /// is not known here, or when the store fails.
    ///
    /// # Cancel safety
    /// That of [`SagaControl::retry`].
    pub async fn cancel(&self, reason: &str) -> Result<(), RuntimeError> {
        self.desk.cancel_seen(&self.key, self.revision, reason).await
    }

    /// Pauses the saga, as [`Runtime::pause`](crate::Runtime::pause) does.
    ///
    /// # Errors
    /// When the saga moved, is paused or has ended already, or is not known here, or when the store fails.
    ///
    /// # Cancel safety
    /// That of [`SagaControl::retry`].
    pub async fn pause(&self, reason: &str) -> Result<(), RuntimeError> {
        self.desk.pause_seen(&self.key, self.revision, reason).await
    }

    /// Resumes the saga, as [`Runtime::resume`](crate::Runtime::resume) does.
    ///
    /// # Errors
    /// When the saga moved, is not paused, or is not known here, or when the store fails.
    ///
    /// # Cancel safety
    /// That of [`SagaControl::retry`].
    pub async fn resume(&self, reason: &str) -> Result<(), RuntimeError> {
        self.desk.resume_seen(&self.key, self.revision, reason).await
    }

    async fn act(&self, action: Action, output: Option<Vec<u8>>, reason: &str) -> Result<(), RuntimeError> {
        self.act_with(action, output, None, reason).await
    }

    /// The same, where a step that is tried again has another input from now on.
    pub(crate) async fn act_with(
        &self,
        action: Action,
        output: Option<Vec<u8>>,
        input: Option<Vec<u8>>,
        reason: &str,
    ) -> Result<(), RuntimeError> {
        outside_step()?;
        let mut act = self.desk.act(name_of(&action), reason);
        if let Some(problem) = act.problem() {
            return Err(self.refused(problem));
        }
        let (stored, mut saga) = self.load().await?;
        let (action, output) = self.of_choice(&saga, action, output)?;
        let parked = saga.state.paused.as_ref().map(|pause| pause.parked.clone()).unwrap_or_default();
        self.check_output(&saga, &action, output.as_deref())?;
        if let Some(input) = input {
            self.check_not_started(&saga).await?;
            self.replace_input(&mut saga, input, &mut act)?;
        }
        let hand_on = self.desk.next_work(&saga).await?;
        let findings = AttemptDetails { output, ..AttemptDetails::default() };
        let prepared = self.desk.decider()?.decide(&mut saga, Event::Operator(action), &findings, hand_on);
        let mut prepared = prepared.map_err(|refused| self.refused(refused.to_string()))?;
        if !parked.is_empty() && !saga.state.is_paused() {
            // A saga that an operator ended by force leaves no row behind that waits for a resume.
            prepared.changes.postponed.extend(due_now(&stored, &parked));
            prepared.leave_free(Duration::ZERO);
        }
        prepared.changes.history.push(act.entry(saga.id));
        match self.desk.commit(&self.key, prepared).await? {
            Ok(()) => Ok(()),
            Err(Miss::Saga(row)) => Err(moved(&row)),
            Err(miss) => Err(self.refused(format!("the action did not apply: {miss:?}"))),
        }
    }

    async fn load(&self) -> Result<(SagaWithSteps, SagaInstance<S>), RuntimeError> {
        let stored = self.desk.stored(&self.key, Some(self.revision)).await?;
        let mut saga = self.desk.instance(&stored)?;
        find_stuck(&mut saga, &stored);
        if let Some((step, input)) =
            saga.state.stuck.as_ref().and_then(|stuck| Some((stuck.step, stuck.input.clone()?)))
        {
            saga.set_input(step, input.into_bytes().into());
        }
        Ok((stored, saga))
    }

    /// A choice that is gone past has no output but the arm that runs.
    fn of_choice(
        &self,
        saga: &SagaInstance<S>,
        action: Action,
        output: Option<Vec<u8>>,
    ) -> Result<(Action, Option<Vec<u8>>), RuntimeError> {
        let choice = saga.state.stuck.as_ref().map(|stuck| stuck.step);
        let choice = choice.filter(|&step| action == Action::Skip && saga.definition.shape.is_choice(step));
        let Some(choice) = choice else { return Ok((action, output)) };
        let of = &saga.definition.shape.steps[choice];
        let named = |name: String| {
            let arm = of.arms.iter().position(|arm| *arm == name);
            let known = of.arms.iter().map(|arm| format!("`{arm}`")).collect::<Vec<_>>().join(", ");
            arm.ok_or_else(|| self.refused(format!("`{}` has no arm `{name}`; it has {known}", of.name)))
        };
        let wanted = output.map(|output| serde_json::from_slice::<Option<String>>(&output)).transpose();
        let wanted = wanted.map_err(|_| self.refused(format!("`{}` is a choice; name the arm that runs", of.name)))?;
        let arm = wanted.flatten().map(named).transpose()?;
        Ok((Action::Choose { arm }, Some(arm_output(of, arm))))
    }

    /// A step that is skipped gives an output if a later step takes one.
    fn check_output(&self, saga: &SagaInstance<S>, action: &Action, output: Option<&[u8]>) -> Result<(), RuntimeError> {
        let (Action::Skip, Some(stuck)) = (action, &saga.state.stuck) else { return Ok(()) };
        let (step, base) = (saga.step(stuck.step), saga.state.base(stuck.step));
        let name = saga.doing(stuck.step);
        let later = &saga.definition.steps[base + 1..];
        let taker = later.iter().find(|later| later.takes_output_of(step.name));
        let check = step.check_list.filter(|_| base == stuck.step).unwrap_or(step.check_output);
        match (taker, output) {
            (_, Some(output)) if !stuck.undo => {
                check(output).map_err(|problem| self.refused(format!("`{name}` cannot have this output: {problem}")))
            }
            (Some(taker), None) if !stuck.undo => Err(self.refused(format!(
                "the step `{}` takes the output of `{name}`; skip it with `skip_with` and that output",
                taker.name
            ))),
            _ => Ok(()),
        }
    }

    pub(crate) fn refused(&self, problem: String) -> RuntimeError {
        refused(&self.key, problem)
    }
}

/// A saga that could not be read was made stuck without its state saying so. Now that it can be read again, what was
/// under way is what is stuck, unless it still has its command.
fn find_stuck<S: Store>(saga: &mut SagaInstance<S>, stored: &SagaWithSteps) {
    if stored.saga.status != Status::Stuck || saga.state.stuck.is_some() {
        return;
    }
    let waits = if saga.definition.width > 1 { stored.work.as_slice() } else { &[] };
    let under_way = |phase| matches!(phase, StepPhase::Started | StepPhase::Undoing);
    let stuck = saga.state.steps.iter().enumerate().filter(|(_, step)| under_way(step.phase));
    let waits = |index| waits.iter().any(|work| work.step.step_and_item() == saga.doing(index).as_str());
    let stuck = stuck.filter(|(index, _)| !waits(*index)).map(|(index, step)| Stuck {
        step: index,
        undo: step.phase == StepPhase::Undoing,
        reason: "it could not be read".to_owned(),
        input: None,
    });
    let mut stuck: VecDeque<Stuck> = stuck.collect();
    (saga.state.stuck, saga.state.also_stuck) = (stuck.pop_front(), stuck.into());
}

fn name_of(action: &Action) -> &'static str {
    match action {
        Action::Retry => "retry",
        Action::Skip | Action::Choose { .. } => "skip",
        Action::Force { completed: true, .. } => "force as completed",
        Action::Force { completed: false, .. } => "force as compensated",
    }
}

impl<S: Store> fmt::Debug for SagaControl<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("key", &self.key).field("revision", &self.revision).finish_non_exhaustive()
    }
}

impl<S: Store> SagaAdmin<S> {
    /// The control of one saga, for an operator who saw it at this revision
    /// ([`SagaStatus::revision`](super::SagaStatus::revision)).
    ///
    /// # Errors
    /// When the key is not a legal one.
    pub fn operator(&self, key: impl AsRef<str>, revision: u64) -> Result<SagaControl<S>, RuntimeError> {
        Ok(SagaControl::new(self.clone(), Key::from_stored(key.as_ref())?, revision))
    }
}
