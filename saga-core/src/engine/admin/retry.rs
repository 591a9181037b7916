//! Trying again: at once what waits for its next attempt, and with another input what is stuck.

use std::fmt::Write as _;

use serde::Serialize;

use super::audit::{AuditEntry, ReplacedInput};
use super::control::SagaControl;
use super::control_error::{ControlError, until_applied};
use super::saga_admin::{SagaAdmin, refused};
use crate::engine::commit::changes;
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::instance::SagaInstance;
use crate::engine::message::{check_value, request_hash};
use crate::key::Key;
use crate::machine::{Action, Effect};
use crate::store::{Miss, Postponed, SagaWithSteps, Status, Store, WorkStatus};

impl<S: Store> SagaAdmin<S> {
    /// Has tried at once what waits for its next attempt, of a step or of an undo; what was asked of another service is
    /// asked again. Answers how much that was: with nothing to hurry nothing is changed.
    ///
    /// What is stuck waits for no attempt: for that there is [`SagaControl::retry`].
    ///
    /// # Errors
    /// When there is no such saga, it is stuck or paused, or the store fails.
    ///
    /// # Cancel safety
    /// When dropped, it was made due or not; the same call again does it.
    pub async fn retry_now(&self, key: impl AsRef<str>, reason: &str) -> Result<usize, RuntimeError> {
        let key = Key::from_stored(key.as_ref())?;
        self.retry_seen_now(&key, None, reason).await
    }

    pub(crate) async fn retry_seen_now(
        &self,
        key: &Key,
        seen: Option<u64>,
        reason: &str,
    ) -> Result<usize, RuntimeError> {
        outside_step()?;
        let act = self.act("retry now", reason);
        if let Some(problem) = act.problem() {
            return Err(refused(key, problem));
        }
        let hurried = until_applied(|| self.try_retry_now(key, seen, &act)).await?;
        hurried.map_err(|(refusal, _)| refused(key, refusal.to_string()))
    }

    async fn try_retry_now(&self, key: &Key, seen: Option<u64>, act: &AuditEntry) -> Result<usize, ControlError> {
        let stored = self.stored(key, seen).await?;
        let problem = match stored.saga.status {
            Status::Stuck => "it is stuck, and waits for no attempt; have what is stuck tried again",
            Status::Paused => "it is paused; resume it, and what fell due meanwhile is tried at once",
            _ => "",
        };
        if !problem.is_empty() {
            return Err(refused(key, problem).into());
        }
        let postponed = waiting(&stored);
        let count = postponed.len();
        if count == 0 {
            return Ok(0);
        }
        match self.record(changes::postpone_all(postponed, act.entry(stored.saga.id))).await? {
            Ok(()) => {
                self.desk.wake_workers();
                Ok(count)
            }
            // Another process has just begun it, or it is done.
            Err(Miss::Work(_)) => Err(ControlError::Moved),
            Err(miss) => Err(refused(key, format!("it was not hurried: {miss:?}")).into()),
        }
    }
}

/// What failed, and nobody has. What merely begins later, or waits until a call must have landed, keeps its time.
fn waiting(stored: &SagaWithSteps) -> Vec<Postponed> {
    let waits = |work: &&WorkStatus| work.owner.is_none() && work.attempts > 0;
    let postponed = |work: &WorkStatus| Postponed {
        work: work.work,
        due_in: std::time::Duration::ZERO,
        attempts: work.attempts,
        in_doubt: work.in_doubt,
        error: None,
    };
    stored.work.iter().filter(waits).map(postponed).collect()
}

impl<S: Store> SagaControl<S> {
    /// Has tried at once what waits for its next attempt, as [`SagaAdmin::retry_now`] does.
    ///
    /// # Errors
    /// When the saga moved, is stuck or paused, or is not known here, or when the store fails.
    ///
    /// # Cancel safety
    /// That of [`SagaControl::retry`].
    pub async fn retry_now(&self, reason: &str) -> Result<usize, RuntimeError> {
        self.desk.retry_seen_now(&self.key, Some(self.revision), reason).await
    }

    /// Tries again a step that is stuck, with fresh attempts, the same key and this input in the place of the one that it
    /// had. Other steps keep theirs. The history has the hashes of both; what they hold stands nowhere but in the step's
    /// record.
    ///
    /// The outside world sees the same key with another content. Where a service remembers keys, it may refuse that.
    ///
    /// # Errors
    /// Those of [`SagaControl::retry`]; and when the input is none of the step, an undo is stuck, the step may have happened
    /// with the input that it had, it is done in another service, or it belongs to a list.
    ///
    /// # Cancel safety
    /// That of [`SagaControl::retry`].
    ///
    /// # Examples
    /// ```
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step]
    /// async fn take_order(_address: String) -> Result<(), StepError> {
    ///     Ok(())
    /// }
    ///
    /// /// It stands behind the pivot: there is no way back, so a rejection needs a person.
    /// #[saga_step]
    /// async fn print_label(address: String) -> Result<(), StepError> {
    ///     if address.contains('?') { Err(StepError::reject("nobody can read this address")) } else { Ok(()) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let label = Saga::named("label").input::<String>().step::<take_order>().pivot().step::<print_label>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&label).start().await?;
    /// let running = runtime.start(&label, "label-1", "Elm Str??t 5".to_owned()).await?;
    /// assert!(matches!(running.outcome().await?, Outcome::Stuck { .. }));
    ///
    /// let seen = runtime.saga("label-1").await?.ok_or("it is there")?.revision;
    /// let operator = runtime.operator("label-1", seen)?.actor("ann");
    /// operator.retry_with(&"Elm Street 5", "the customer told us").await?;
    /// assert!(matches!(running.closed().await?, Outcome::Completed { .. }));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn retry_with<T: Serialize + Sync + ?Sized>(&self, input: &T, reason: &str) -> Result<(), RuntimeError> {
        let input = serde_json::to_vec(input).map_err(|error| self.refused(format!("the input: {error}")))?;
        let input = self.desk.decider()?.check_length(input).map_err(|problem| self.refused(problem))?;
        self.act_with(Action::Retry, None, Some(input), reason).await
    }

    /// A sub-saga that was started keeps the input that it was started with.
    pub(crate) async fn check_not_started(&self, saga: &SagaInstance<S>) -> Result<(), RuntimeError> {
        let stuck = saga.state.stuck.as_ref().map(|stuck| stuck.step);
        let Some(step) = stuck.filter(|&step| saga.definition.shape.is_child(step)) else { return Ok(()) };
        let key = self.key.hosted(saga.step(step).name);
        match self.desk.desk.store.saga(&self.desk.desk.tenant, &key).await? {
            None => Ok(()),
            Some(_) => Err(self.refused(format!(
                "the step `{}` cannot have another input: the saga {key} was started with the input that it had; skip it, or \
                 restart the saga",
                saga.step(step).name
            ))),
        }
    }

    /// Puts the input in the place of the one that the stuck step has.
    pub(crate) fn replace_input(
        &self,
        saga: &mut SagaInstance<S>,
        input: Vec<u8>,
        act: &mut AuditEntry,
    ) -> Result<(), RuntimeError> {
        let Some(stuck) = saga.state.stuck.clone() else { return Ok(()) };
        let (index, step) = (stuck.step, saga.step(stuck.step));
        let name = saga.doing(index);
        let problem = if stuck.undo {
            Some("what is stuck is its undo, which gets what the step had".to_owned())
        } else if saga.state.base(index) != index || step.check_list.is_some() {
            Some("its input stands in a list; skip it, or restart the saga".to_owned())
        } else if matches!(saga.definition.shape.effect(&saga.state, index), Effect::Remote { .. }) {
            Some("another service knows its key with the input that it had; skip it, or restart the saga".to_owned())
        } else if saga.state.steps[index].in_doubt {
            Some("it may have happened with the input that it had, which its undo needs; have it tried again as it is, or skip it".to_owned())
        } else {
            check_value(step.check_input, &input).err().map(|problem| format!("this is no input of it: {problem}"))
        };
        if let Some(problem) = problem {
            return Err(self.refused(format!("the step `{name}` cannot have another input: {problem}")));
        }
        let (old, new) = (hex(&request_hash(saga.input_of(index))), hex(&request_hash(&input)));
        act.input = Some(ReplacedInput { step: name.to_string(), old, new });
        saga.set_input(index, input.into());
        Ok(())
    }
}

/// Bytes in hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing into a string never fails.
        _ = write!(text, "{byte:02x}");
    }
    text
}
