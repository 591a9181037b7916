//! What people do with sagas and messages, through a runtime.

use super::cancel::CancelOutcome;
use super::dead_letters::DeadLetterAdmin;
use super::error::RuntimeError;
use super::operator::SagaControl;
use super::outgoing::OutboxAdmin;
use super::runtime::Runtime;
use super::saga_desk::SagaAdmin;
use super::signal::SignalOutcome;
use crate::step::Signal;
use crate::store::Store;

impl<S: Store> Runtime<S> {
    /// What an operator can do with the saga of that key, who saw it at this revision
    /// ([`SagaStatus::revision`](super::SagaStatus::revision)). A step that is hosted for another service has the key `key>step`.
    ///
    /// # Errors
    /// When the key is not a legal one.
    pub fn operator(&self, key: impl AsRef<str>, revision: u64) -> Result<SagaControl<S>, RuntimeError> {
        self.admin().operator(key, revision)
    }

    /// Cancels a saga: it turns round, nothing new of it begins, what is in flight comes to its end, and what took effect is
    /// undone. It can be asked as often as wanted: a saga that compensates or has ended already is left as it is, which
    /// the answer says. When it returns, the saga has turned round for good; wait for its end with
    /// [`Runtime::attach`].
    ///
    /// What waits for its next attempt does not wait for it any longer. A step in another service is waited for, and
    /// undone there.
    ///
    /// # Errors
    /// When the pivot is under way or done, since from there the saga only goes forward; when there is no such saga, it is
    /// a step of another service's saga, or its definition is not known here; or when the store fails.
    ///
    /// # Cancel safety
    /// When dropped, the saga was cancelled or not; the same call again says which.
    ///
    /// # Examples
    /// ```
    /// use saga_core::engine::CancelOutcome;
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::store::Status;
    /// use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation)]
    /// async fn ask_for_price(_item: String) -> Result<(), StepError> {
    ///     Err(StepError::retry("nobody answers"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let offer = Saga::named("offer").input::<String>().step::<ask_for_price>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&offer).start().await?;
    ///
    /// let started = runtime.start(&offer, "offer-1", "chai".to_owned()).await?;
    /// assert_eq!(runtime.cancel("offer-1", "the customer left").await?, CancelOutcome::Begun);
    ///
    /// let outcome = started.outcome().await?;
    /// assert!(matches!(outcome, Outcome::Compensated { cancelled: true, .. }));
    /// let again = runtime.cancel("offer-1", "the customer left").await?;
    /// assert_eq!(again, CancelOutcome::Ended(Status::Compensated));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self, key: impl AsRef<str>, reason: &str) -> Result<CancelOutcome, RuntimeError> {
        self.admin().cancel(key, reason).await
    }

    /// What people can do with sagas, where it is to be said who does it.
    pub fn admin(&self) -> SagaAdmin<S> {
        SagaAdmin::of(&self.shared, &self.tenant)
    }

    /// Sends a signal to the saga of that key, for the step that waits for it: see
    /// [`SagaBuilder::wait_for`](crate::saga::SagaBuilder::wait_for). When it returns, what the answer says is durable. It can
    /// be sent as often as wanted under the same `id`, and counts once; of two with different ids the first one counts.
    ///
    /// # Errors
    /// When there is no such saga yet: send it again later. When the saga has no step that waits for such a signal, or the step
    /// takes another form ([`RuntimeError::SignalForm`]); when its definition is not known here, or the store fails.
    ///
    /// # Cancel safety
    /// When dropped, the signal was received or not; the same call again says which.
    pub async fn signal<T: Signal>(
        &self,
        key: impl AsRef<str>,
        id: impl AsRef<str>,
        signal: &T,
    ) -> Result<SignalOutcome, RuntimeError> {
        SagaAdmin::of(&self.shared, &self.tenant).signal(key, id, signal).await
    }

    /// The messages that could not be handled, and what can be done with them.
    pub fn dead_letters(&self) -> DeadLetterAdmin<S> {
        DeadLetterAdmin::of(&self.shared, &self.tenant)
    }

    /// What waits to be sent, and what can be done with what cannot be.
    pub fn outbox(&self) -> OutboxAdmin<S> {
        OutboxAdmin::of(&self.shared, &self.tenant)
    }
}
