//! What a service does on an event, as the application declares it.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::builder::ServiceBuilder;
use super::error::ServiceProblem;
use super::event_step::EventStep;
use super::reaction::{Planned, Plans, Wired};
use crate::key::check_topic;
use crate::machine::Mark;
use crate::saga::{EmittedEvents, EventEncoder, Mapping, StepDefinition};
use crate::step::{Event, Handler, Step};
use crate::store::Store;

/// Declares what a service does on the event `E`.
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

impl<S: Store> ServiceBuilder<S> {
    /// Declares what the service does on the event `E`. An event is published under a topic of its own name, by
    /// [`Runtime::publish`](crate::Runtime::publish) and by the reactions of other services.
    ///
    /// It belongs to the saga that the message names, or else to the saga of its ordering key.
    #[must_use]
    pub fn on<E: Event>(self) -> OnEvent<S, E> {
        self.on_topic(E::NAME)
    }

    /// The same for an event that is published under another topic, with other events: under the name of the saga whose
    /// steps emit it, or of the application's choice. Events of the topic without a reaction are ignored.
    #[must_use]
    pub fn on_topic<E: Event>(mut self, topic: impl Into<String>) -> OnEvent<S, E> {
        let topic = topic.into();
        if let Err(problem) = check_topic(&topic) {
            self.report(ServiceProblem::Topic { event: E::NAME, problem: problem.to_string() });
        }
        OnEvent { service: self, topic, event: PhantomData }
    }
}

impl<S: Store, T: Step> EventStep<S, T> {
    /// Continues the service: see [`ServiceBuilder::on`].
    #[must_use]
    pub fn on<E: Event>(self) -> OnEvent<S, E> {
        self.service.on()
    }

    /// Continues the service: see [`ServiceBuilder::on_topic`].
    #[must_use]
    pub fn on_topic<E: Event>(self, topic: impl Into<String>) -> OnEvent<S, E> {
        self.service.on_topic(topic)
    }
}

impl<S: Store, E: Event> OnEvent<S, E> {
    /// Runs a step that takes the event itself, once per saga: under the step key `key:step`, whatever the event's id
    /// is. The same event again changes nothing; one of the same saga with another content becomes a dead letter.
    #[must_use]
    pub fn run<T: Handler<S, Input: EventInput<E>>>(self) -> EventStep<S, T> {
        self.wire::<T>(Mapping::of_event::<E, T>(<T::Input as EventInput<E>>::of), false)
    }

    /// Runs a step whose input a closure makes from the event, once per saga.
    #[must_use]
    pub fn run_with<T: Handler<S>>(self, input: impl Fn(&E) -> T::Input + Send + Sync + 'static) -> EventStep<S, T> {
        self.wire::<T>(Mapping::from_event::<E, T>(input), false)
    }

    /// Runs a step that takes the event itself, once per event: under the step key `key:step#n`, where the number is derived
    /// from the event's id.
    #[must_use]
    pub fn run_per_event<T: Handler<S, Input: EventInput<E>>>(self) -> EventStep<S, T> {
        self.wire::<T>(Mapping::of_event::<E, T>(<T::Input as EventInput<E>>::of), true)
    }

    /// Runs a step whose input a closure makes from the event, once per event.
    #[must_use]
    pub fn run_per_event_with<T: Handler<S>>(
        self,
        input: impl Fn(&E) -> T::Input + Send + Sync + 'static,
    ) -> EventStep<S, T> {
        self.wire::<T>(Mapping::from_event::<E, T>(input), true)
    }

    /// Undoes a step, once: its compensation gets the recorded input and output of the step. A step that was not done yet
    /// gets a tombstone: when the event that starts it arrives, nothing is done. A step in flight ends first.
    #[must_use]
    pub fn undo<T: Handler<S>>(self) -> ServiceBuilder<S> {
        self.plan::<T>(Plans::Undo)
    }

    /// Gives a step that has not begun a tombstone: when the event that starts it arrives, nothing is done. A step that was
    /// done, or is in flight, stays as it is. Use it to keep a pivot from running for a saga that has ended.
    #[must_use]
    pub fn tombstone<T: Handler<S>>(self) -> ServiceBuilder<S> {
        self.plan::<T>(Plans::Tombstone)
    }

    /// Sets a deadline after this event, by which the step `T`, the pivot of its saga, must have begun. If it has not, one
    /// transaction gives `T` a tombstone and publishes the event `F`, on which other services undo their steps. If `T` was
    /// done, rejected or failed before, the deadline has no effect; if it is in flight, its outcome decides.
    ///
    /// The time is counted from the commit of the event.
    #[must_use]
    pub fn deadline<T: Handler<S>, F: Event>(
        self,
        after: Duration,
        event: impl Fn(&E) -> F + Send + Sync + 'static,
    ) -> ServiceBuilder<S> {
        self.plan::<T>(Plans::Deadline { after, tell: EventEncoder::of_event(event) })
    }

    /// Notes in the timeline of the saga that it has begun. The service then follows sagas: other services report the outcomes
    /// of their steps to it with [`reports_to`](ServiceBuilder::reports_to), and
    /// [`SagaQuery::timeline`](crate::engine::SagaQuery::timeline) joins them.
    #[must_use]
    pub fn mark_begun(self) -> ServiceBuilder<S> {
        self.mark(Mark::Begun)
    }

    /// Notes in the timeline of the saga that it has ended as completed.
    #[must_use]
    pub fn mark_completed(self) -> ServiceBuilder<S> {
        self.mark(Mark::Completed)
    }

    /// Notes in the timeline of the saga that it has ended as compensated.
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
