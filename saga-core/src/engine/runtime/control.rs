//! What people do with sagas and messages, through a runtime.

use super::runtime::Runtime;
use crate::engine::admin::{
    CancelOutcome, DeadLetterAdmin, OutboxAdmin, PauseOutcome, ResumeOutcome, SagaAdmin, SagaControl, SignalOutcome,
};
use crate::engine::context::RuntimeError;
use crate::step::Signal;
use crate::store::Store;

impl<S: Store> Runtime<S> {
    /// Pauses a saga: no step, no undo and no further attempt of it begins until it is [resumed](Self::resume).
    /// Attempts that are running finish and are recorded. It can be called any number of times: a saga that is paused
    /// or has ended already is left as it is, and the returned value says so.
    ///
    /// A paused saga can be cancelled: it starts compensating, and is undone once it is resumed. A stuck saga is
    /// still stuck when it is resumed. A saga that has nothing left to do ends, and its pause with it.
    ///
    /// To record who paused it, use [`Runtime::admin`].
    ///
    /// # Errors
    /// When there is no such saga, or its definition is not known here; or when the store fails.
    ///
    /// # Cancel safety
    /// When dropped, the saga was paused or not; the same call again says which.
    ///
    /// # Examples
    /// ```
    /// use saga_core::engine::{PauseOutcome, ResumeOutcome};
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::store::Status;
    /// use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation)]
    /// async fn send_newsletter(_issue: u32) -> Result<(), StepError> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let newsletter = Saga::named("newsletter").input::<u32>().step::<send_newsletter>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&newsletter).start().await?;
    ///
    /// let tomorrow = std::time::Duration::from_hours(24);
    /// let started = runtime.start(&newsletter, "issue-7", 7).after(tomorrow).await?;
    /// let desk = runtime.admin().actor("ann");
    /// assert_eq!(desk.pause("issue-7", "a picture is missing").await?, PauseOutcome::Paused);
    /// assert_eq!(desk.pause("issue-7", "a picture is missing").await?, PauseOutcome::Already);
    ///
    /// let status = runtime.saga("issue-7").await?.ok_or("it is there")?;
    /// assert_eq!(status.summary.status, Status::Paused);
    /// assert_eq!(status.summary.paused.and_then(|pause| pause.actor).as_deref(), Some("ann"));
    ///
    /// assert_eq!(desk.resume("issue-7", "it was found").await?, ResumeOutcome::Resumed);
    /// # desk.cancel("issue-7", "the example is over").await?;
    /// # started.outcome().await?;
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pause(&self, key: impl AsRef<str>, reason: &str) -> Result<PauseOutcome, RuntimeError> {
        self.admin().pause(key, reason).await
    }

    /// Lets a paused saga go on: what waited begins, and an attempt that fell due meanwhile is made at once. One that is
    /// not paused is left as it is, which the answer says.
    ///
    /// # Errors
    /// Those of [`Runtime::pause`].
    ///
    /// # Cancel safety
    /// When dropped, the saga was resumed or not; the same call again says which.
    pub async fn resume(&self, key: impl AsRef<str>, reason: &str) -> Result<ResumeOutcome, RuntimeError> {
        self.admin().resume(key, reason).await
    }
}

impl<S: Store> Runtime<S> {
    /// What an operator can do with the saga of that key, who saw it at this revision
    /// ([`SagaStatus::revision`](crate::engine::SagaStatus::revision)). A step that is hosted for another service has the key `key>step`.
    ///
    /// # Errors
    /// When the key is not a legal one.
    pub fn operator(&self, key: impl AsRef<str>, revision: u64) -> Result<SagaControl<S>, RuntimeError> {
        self.admin().operator(key, revision)
    }

    /// Cancels a saga: it starts compensating. No new step of it begins, running attempts finish, and its effects are
    /// undone. It can be called any number of times: a saga that compensates or has ended already is left as it is,
    /// and the returned value says so. When it returns, the cancel is durable; wait for the end of the saga with
    /// [`Runtime::attach`].
    ///
    /// A step that waits for its next attempt does not wait any longer. A step in another service is waited for, and
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
    /// use saga_core::engine::{CancelOutcome, CompensationCause};
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::store::Status;
    /// use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation)]
    /// async fn ask_for_price(_item: String) -> Result<(), StepError> {
    ///     Err(StepError::retry("the supplier does not answer"))
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
    /// assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }));
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
        SagaAdmin::of(self.engine.admin(), &self.tenant)
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
        SagaAdmin::of(self.engine.admin(), &self.tenant).signal(key, id, signal).await
    }

    /// The messages that could not be handled, and what can be done with them.
    pub fn dead_letters(&self) -> DeadLetterAdmin<S> {
        DeadLetterAdmin::of(self.engine.admin(), &self.tenant)
    }

    /// What waits to be sent, and what can be done with what cannot be.
    pub fn outbox(&self) -> OutboxAdmin<S> {
        OutboxAdmin::of(self.engine.admin(), &self.tenant)
    }
}
