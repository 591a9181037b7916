//! Steps that are wired by events instead of by a definition: what a service does when an event comes, and which events
//! say what became of it.
//!
//! A step that an event asks for is a saga of one step, as one that is hosted for another service: under the key of the
//! saga that the event belongs to, with a record, retries and an undo of its own. [`Service::named`](crate::Service::named)
//! begins a service, [`ServiceBuilder::on`](crate::service::ServiceBuilder::on) says what it does when an event comes:
//!
//! | after `.on::<Event>()` | what is done |
//! |---|---|
//! | [`run::<step>()`](OnEvent::run), [`run_with`](OnEvent::run_with) | the step, once a saga |
//! | [`run_per_event::<step>()`](OnEvent::run_per_event), [`run_per_event_with`](OnEvent::run_per_event_with) | the step, once an event |
//! | [`undo::<step>()`](OnEvent::undo) | the step is undone, once; one that was not done yet is barred |
//! | [`tombstone::<step>()`](OnEvent::tombstone) | the step is barred if it was not done yet; nothing is undone |
//! | [`deadline::<pivot, Passed>(..)`](OnEvent::deadline) | after a time a pivot that was not done is barred, and `Passed` is told |
//! | [`mark_begun()`](OnEvent::mark_begun), [`mark_completed()`](OnEvent::mark_completed), [`mark_compensated()`](OnEvent::mark_compensated) | it is noted in the timeline of the saga |
//!
//! Events come in any order, and more than once. A step is done once all the same, since its record bars the second time;
//! an undo that comes before its step bars it; a step that reads what another one returned waits for that.
//!
//! No service knows the whole saga. One of them, or one of its own, may **follow** it: it marks sagas by events, the others
//! say [`reports_to`](crate::service::ServiceBuilder::reports_to) it, and
//! [`SagaQuery::timeline`](crate::engine::SagaQuery::timeline) shows what happened, as one. That is a view: nothing hangs
//! on it.
//!
//! What a person looks at, and where:
//!
//! | question | answer |
//! |---|---|
//! | where does the whole saga stand, and what happened when? | [`SagaQuery::timeline`](crate::engine::SagaQuery::timeline) by its key, in the store of the service that follows it |
//! | which sagas are there? | [`SagaQuery::timelines`](crate::engine::SagaQuery::timelines), in the same store |
//! | what becomes of one step, with its attempts and its errors? | [`SagaQuery::status`](crate::engine::SagaQuery::status) by `key>step`, in the store of the service that does it; [`list`](crate::engine::SagaQuery::list) has it among the sagas |
//! | what is stuck? | a timeline says that a step needs a person; the operator of that service acts on `key>step` |

mod event_step;
mod on;
mod reaction;
mod told;

pub use self::event_step::EventStep;
pub use self::on::{EventInput, OnEvent};
pub(crate) use self::reaction::{Planned, Plans, Reaction, Reacts, Wired, put_together};
pub(crate) use self::told::{EmittedEvents, EventEncoder, OptionalOutput};
