use std::fmt;
use std::marker::PhantomData;

use super::{EmittedEvents, EventEncoder, OnEvent, OptionalOutput};
use crate::service::{Service, ServiceBuilder, ServiceError};
use crate::step::{Event, Handler, Hosted, Rejection, Step};
use crate::store::Store;

/// A service whose step `T` was just wired to an event: what is told of the step, and whatever else the service does.
///
/// Events leave in the transaction that records what became of the step, under the topic of their name, for the saga of
/// the event that asked. What the step itself emits with [`ctx.emit`](crate::StepContext::emit) leaves in the same way.
pub struct EventStep<S: Store, T> {
    service: ServiceBuilder<S>,
    step: PhantomData<fn(T)>,
}

impl<S: Store, T: Step> EventStep<S, T> {
    pub(super) fn new(service: ServiceBuilder<S>) -> Self {
        Self { service, step: PhantomData }
    }

    /// When the step was done, its output is told: it is an event.
    #[must_use]
    pub fn emits_output(self) -> Self
    where
        T::Output: Event + Clone,
    {
        self.emits(|_, output| output.clone())
    }

    /// When the step was done, this event is told, made of what the step took and returned. If it cannot be made, the step
    /// was not done: it needs a person.
    #[must_use]
    pub fn emits<E: Event>(self, tell: impl Fn(&T::Input, &T::Output) -> E + Send + Sync + 'static) -> Self {
        self.tells(|told| told.done.push(EventEncoder::of_output::<T, E>(tell)))
    }

    /// When the step was rejected, or failed as often as it may, this event is told, made of what the step took and of the
    /// reason. It is not told of a step that was taken back.
    #[must_use]
    pub fn emits_on_reject<E: Event>(self, tell: impl Fn(&T::Input, &Rejection) -> E + Send + Sync + 'static) -> Self {
        self.tells(|told| told.failed.push(EventEncoder::of_rejection::<T, E>(tell)))
    }

    /// When the step was undone, this event is told, made of what the step took. It is not told of a step that was barred.
    #[must_use]
    pub fn emits_on_undo<E: Event>(self, tell: impl Fn(&T::Input) -> E + Send + Sync + 'static) -> Self {
        self.tells(|told| told.undone.push(EventEncoder::of_undo::<T, E>(tell)))
    }

    /// Lets the step read what another step of this service returned for the same saga, with
    /// [`ctx.optional_output`](crate::StepContext::optional_output): as it is when the event comes. A step that takes it as
    /// [`Output`](crate::Output) waits for it, and need not say so here.
    #[must_use]
    pub fn reads<X: Step>(self) -> Self {
        self.tells(|told| told.reads.push(OptionalOutput { step: X::NAME, is_awaited: false }))
    }

    /// What else the service does: see [`ServiceBuilder::on`].
    #[must_use]
    pub fn on<E: Event>(self) -> OnEvent<S, E> {
        self.service.on()
    }

    /// What else the service does: see [`ServiceBuilder::on_topic`].
    #[must_use]
    pub fn on_topic<E: Event>(self, topic: impl Into<String>) -> OnEvent<S, E> {
        self.service.on_topic(topic)
    }

    /// Adds a step for the sagas of others: see [`ServiceBuilder::host`].
    #[must_use]
    pub fn host<X: Handler<S> + Hosted>(self) -> ServiceBuilder<S> {
        self.service.host::<X>()
    }

    /// Checks the service: see [`ServiceBuilder::build`].
    ///
    /// # Errors
    /// Every problem of it, each with its remedy.
    pub fn build(self) -> Result<Service<S>, ServiceError> {
        self.service.build()
    }

    fn tells(mut self, add: impl FnOnce(&mut EmittedEvents)) -> Self {
        self.service.tell_of(T::NAME, add);
        self
    }
}

impl<S: Store, T> fmt::Debug for EventStep<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStep").field("service", &self.service).finish()
    }
}
