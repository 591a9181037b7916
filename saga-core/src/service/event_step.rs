//! The events that a choreographed step emits, as the application declares them.

use std::fmt;
use std::marker::PhantomData;

use super::builder::{Service, ServiceBuilder};
use super::error::ServiceError;
use crate::saga::{EmittedEvents, EventEncoder, OptionalOutput};
use crate::step::{Event, Handler, Hosted, Rejection, Step};
use crate::store::Store;

/// A service whose step `T` was just added to an event: declares the events that the step emits, or continues the service.
///
/// Events leave in the transaction that records the outcome of the step, under the topic of their name, for the saga of the
/// event that started it. Events that the step emits itself with [`ctx.emit`](crate::StepContext::emit) leave in the same
/// way.
pub struct EventStep<S: Store, T> {
    pub(super) service: ServiceBuilder<S>,
    step: PhantomData<fn(T)>,
}

impl<S: Store, T: Step> EventStep<S, T> {
    pub(super) fn new(service: ServiceBuilder<S>) -> Self {
        Self { service, step: PhantomData }
    }

    /// When the step is done, emits its output, which is an event.
    #[must_use]
    pub fn emits_output(self) -> Self
    where
        T::Output: Event + Clone,
    {
        self.emits(|_, output| output.clone())
    }

    /// When the step is done, emits this event, made from the step's input and output. If the event cannot be made, the step is
    /// stuck.
    #[must_use]
    pub fn emits<E: Event>(self, event: impl Fn(&T::Input, &T::Output) -> E + Send + Sync + 'static) -> Self {
        self.emit(|events| events.done.push(EventEncoder::of_output::<T, E>(event)))
    }

    /// When the step is rejected, or has no attempts left, emits this event, made from the step's input and the reason. A step
    /// that was undone does not emit it.
    #[must_use]
    pub fn emits_on_reject<E: Event>(self, event: impl Fn(&T::Input, &Rejection) -> E + Send + Sync + 'static) -> Self {
        self.emit(|events| events.failed.push(EventEncoder::of_rejection::<T, E>(event)))
    }

    /// When the step is undone, emits this event, made from the step's input. A step with a tombstone does not emit it.
    #[must_use]
    pub fn emits_on_undo<E: Event>(self, event: impl Fn(&T::Input) -> E + Send + Sync + 'static) -> Self {
        self.emit(|events| events.undone.push(EventEncoder::of_undo::<T, E>(event)))
    }

    /// Lets the step read the output of another step of this service for the same saga, with
    /// [`ctx.optional_output`](crate::StepContext::optional_output), if it is known when the event arrives. A step that takes
    /// it as [`Output`](crate::Output) waits for it, and need not declare it here.
    #[must_use]
    pub fn reads<X: Step>(self) -> Self {
        self.emit(|events| events.reads.push(OptionalOutput { step: X::NAME, is_awaited: false }))
    }

    /// Adds a step for the sagas of others: see [`ServiceBuilder::host`].
    #[must_use]
    pub fn host<X: Handler<S> + Hosted>(self) -> ServiceBuilder<S> {
        self.service.host::<X>()
    }

    /// Checks the service: see [`ServiceBuilder::build`].
    ///
    /// # Errors
    /// All problems of the service, each with its remedy.
    pub fn build(self) -> Result<Service<S>, ServiceError> {
        self.service.build()
    }

    fn emit(mut self, add: impl FnOnce(&mut EmittedEvents)) -> Self {
        self.service.emit_for(T::NAME, add);
        self
    }
}

impl<S: Store, T> fmt::Debug for EventStep<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStep").field("service", &self.service).finish()
    }
}
