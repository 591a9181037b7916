use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::{EmittedEvents, EventEncoder, EventStep, Planned, Plans, Wired};
use crate::machine::Mark;
use crate::saga::{Mapping, StepDefinition};
use crate::service::ServiceBuilder;
use crate::step::{Event, Handler};
use crate::store::Store;

/// What a service does when the event `E` comes.
pub struct OnEvent<S: Store, E> {
    service: ServiceBuilder<S>,
    topic: String,
    event: PhantomData<fn(E)>,
}

/// The input of a step that takes the event `E` itself.
#[diagnostic::on_unimplemented(
    message = "the event is `{E}`, and the step takes `{Self}`",
    label = "takes `{Self}`",
    note = "make the step's input of the event: `.run_with::<step>(|event| ..)`"
)]
pub trait EventInput<E> {
    #[doc(hidden)]
    fn of(event: E) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E> EventInput<E> for E {
    fn of(event: E) -> Self {
        event
    }
}

impl<S: Store, E: Event> OnEvent<S, E> {
    pub(crate) fn new(service: ServiceBuilder<S>, topic: String) -> Self {
        Self { service, topic, event: PhantomData }
    }

    /// Does a step that takes the event itself, once for each saga: under the step key `key:step`, whatever the event's id
    /// is. The same event again changes nothing; one of the same saga with another content becomes a dead letter.
    #[must_use]
    pub fn run<T: Handler<S, Input: EventInput<E>>>(self) -> EventStep<S, T> {
        self.wire::<T>(Mapping::of_event::<E, T>(<T::Input as EventInput<E>>::of), false)
    }

    /// Does a step whose input is made of the event, once for each saga.
    #[must_use]
    pub fn run_with<T: Handler<S>>(self, input: impl Fn(&E) -> T::Input + Send + Sync + 'static) -> EventStep<S, T> {
        self.wire::<T>(Mapping::from_event::<E, T>(input), false)
    }

    /// Does a step that takes the event itself, once for each event: under the step key `key:step#n`, where the number is
    /// made of the event's id.
    #[must_use]
    pub fn run_per_event<T: Handler<S, Input: EventInput<E>>>(self) -> EventStep<S, T> {
        self.wire::<T>(Mapping::of_event::<E, T>(<T::Input as EventInput<E>>::of), true)
    }

    /// Does a step whose input is made of the event, once for each event.
    #[must_use]
    pub fn run_per_event_with<T: Handler<S>>(
        self,
        input: impl Fn(&E) -> T::Input + Send + Sync + 'static,
    ) -> EventStep<S, T> {
        self.wire::<T>(Mapping::from_event::<E, T>(input), true)
    }

    /// Undoes a step, once: its compensation gets what the step's own record says that it took and returned. A step that
    /// was not done yet is barred: when the event that asks for it comes, nothing is done. One that is on its way comes to
    /// its end first.
    #[must_use]
    pub fn undo<T: Handler<S>>(self) -> ServiceBuilder<S> {
        self.plan::<T>(Plans::Undo)
    }

    /// Bars a step that has not begun: when the event that asks for it comes, nothing is done. One that was done, or is on
    /// its way, stays as it is. So a pivot, which nothing undoes, is kept from being done for a saga that is over.
    #[must_use]
    pub fn tombstone<T: Handler<S>>(self) -> ServiceBuilder<S> {
        self.plan::<T>(Plans::Bar)
    }

    /// Says that so long after this event the step `T` must have begun: it is the pivot of its saga, which is over if it
    /// has not. Then `T` is barred and the event `F` is told, in one transaction, for other services to undo by what they
    /// did. If `T` was done or came to nothing before, the deadline does nothing; if it is on its way, its end decides.
    ///
    /// The time is counted from when the event was committed.
    #[must_use]
    pub fn deadline<T: Handler<S>, F: Event>(
        self,
        after: Duration,
        tell: impl Fn(&E) -> F + Send + Sync + 'static,
    ) -> ServiceBuilder<S> {
        self.plan::<T>(Plans::Deadline { after, tell: EventEncoder::of_event(tell) })
    }

    /// Notes in the timeline of the saga that it has begun. The service follows sagas then: other services report what
    /// becomes of their steps to it with [`reports_to`](ServiceBuilder::reports_to), and
    /// [`SagaQuery::timeline`](crate::engine::SagaQuery::timeline) shows all of it as one.
    #[must_use]
    pub fn mark_begun(self) -> ServiceBuilder<S> {
        self.mark(Mark::Begun)
    }

    /// Notes in the timeline of the saga that it has ended with what was wanted.
    #[must_use]
    pub fn mark_completed(self) -> ServiceBuilder<S> {
        self.mark(Mark::Completed)
    }

    /// Notes in the timeline of the saga that it has ended without: what was done of it is undone.
    #[must_use]
    pub fn mark_compensated(self) -> ServiceBuilder<S> {
        self.mark(Mark::Compensated)
    }

    fn mark(self, mark: Mark) -> ServiceBuilder<S> {
        let Self { mut service, topic, .. } = self;
        service.plan(Planned { event: E::NAME, topic, step: "", plans: Plans::Mark(mark) });
        service
    }

    fn wire<T: Handler<S>>(self, input: Mapping, is_each: bool) -> EventStep<S, T> {
        let Self { mut service, topic, .. } = self;
        let step = StepDefinition::of::<T>(None, Vec::new());
        let wired = Wired { shape: step.shape::<T>(), step, told: EmittedEvents::default(), is_each };
        service.wire(T::NAME, wired);
        service.plan(Planned { event: E::NAME, topic, step: T::NAME, plans: Plans::Run { input } });
        EventStep::new(service)
    }

    fn plan<T: Handler<S>>(self, plans: Plans) -> ServiceBuilder<S> {
        let Self { mut service, topic, .. } = self;
        service.plan(Planned { event: E::NAME, topic, step: T::NAME, plans });
        service
    }
}

impl<S: Store, E> fmt::Debug for OnEvent<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnEvent").field("service", &self.service).field("topic", &self.topic).finish()
    }
}
