//! What an operator can do with a saga that is stuck.

use serde::Serialize;

use super::saga_control::SagaControl;
use super::stuck_action::{StuckAction, act_on_stuck};
use crate::engine::admin::admin_context::refused;
use crate::engine::context::RuntimeError;
use crate::key::Key;
use crate::machine::Action;
use crate::store::Store;

impl<S: Store> SagaControl<S> {
    /// Tries again what is stuck, with fresh attempts and the same key.
    ///
    /// # Errors
    /// When the saga is not stuck, and when another decision about it is committed first; the call may be repeated.
    ///
    /// # Cancel safety
    /// When dropped, the action was done whole or not at all; do it again with the same revision to be sure.
    pub async fn retry(&self, reason: &str) -> Result<(), RuntimeError> {
        self.act(StuckAction::of(Action::Retry), reason).await
    }

    /// Tries again a step that is stuck, with fresh attempts, the same key and this input instead of the one that it had.
    /// Other steps keep theirs. The history has the hashes of both inputs; the inputs themselves are only in the record of
    /// the step.
    ///
    /// Another system sees the same key with another content. A service that remembers keys may refuse that.
    ///
    /// # Errors
    /// Those of [`SagaControl::retry`]; and when the value is no input of the step, an undo is stuck, the step may have
    /// taken effect with the input that it had, it is done in another service, or it belongs to a list.
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
    /// /// After the pivot there is no way back, so a rejection makes the saga stuck.
    /// #[saga_step]
    /// async fn print_label(address: String) -> Result<(), StepError> {
    ///     if address.contains('?') { Err(StepError::reject("this address cannot be read")) } else { Ok(()) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let label = Saga::named("label").input::<String>().step::<take_order>().pivot().step::<print_label>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&label).start().await?;
    /// let running = runtime.start(&label, "label-1", "Elm Str??t 5".to_owned()).await?;
    /// assert!(matches!(running.outcome().await?, Outcome::Stuck { .. }));
    ///
    /// let seen = runtime.status("label-1").await?.ok_or("it is there")?.revision;
    /// let control = runtime.admin().actor("ann").control("label-1").at_revision(seen);
    /// control.retry_with(&"Elm Street 5", "the customer told us").await?;
    /// assert!(matches!(running.closed().await?, Outcome::Completed { .. }));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn retry_with<T: Serialize + Sync + ?Sized>(&self, input: &T, reason: &str) -> Result<(), RuntimeError> {
        let input = Some(self.encode("input", input)?);
        self.act(StuckAction { input, ..StuckAction::of(Action::Retry) }, reason).await
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
        self.act(StuckAction::of(Action::Skip), reason).await
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
        let output = Some(self.encode("output", output)?);
        self.act(StuckAction { output, ..StuckAction::of(Action::Skip) }, reason).await
    }

    /// Ends the saga as completed, in its present state: nothing more of it runs.
    ///
    /// # Errors
    /// Those of [`SagaControl::retry`].
    ///
    /// # Cancel safety
    /// That of [`SagaControl::retry`].
    pub async fn force_completed(&self, reason: &str) -> Result<(), RuntimeError> {
        self.act(StuckAction::force(true, reason), reason).await
    }

    /// Ends the saga as compensated, in its present state: nothing more of it runs.
    ///
    /// # Errors
    /// Those of [`SagaControl::retry`].
    ///
    /// # Cancel safety
    /// That of [`SagaControl::retry`].
    pub async fn force_compensated(&self, reason: &str) -> Result<(), RuntimeError> {
        self.act(StuckAction::force(false, reason), reason).await
    }

    async fn act(&self, action: StuckAction, reason: &str) -> Result<(), RuntimeError> {
        act_on_stuck(&self.ctx, &Key::from_stored(&self.key)?, self.seen, action, reason).await
    }

    fn encode<T: Serialize + ?Sized>(&self, what: &str, value: &T) -> Result<Vec<u8>, RuntimeError> {
        let key = Key::from_stored(&self.key)?;
        let value = serde_json::to_vec(value).map_err(|error| refused(&key, format!("the {what}: {error}")))?;
        self.ctx.decider()?.check_length(value).map_err(|problem| refused(&key, problem))
    }
}
