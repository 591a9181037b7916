//! Choreography: steps that events start instead of a definition, and the events that report their outcomes.
//!
//! A step that an event starts is a saga of one step, like a step that is hosted for another service. It runs under the key
//! of the saga that the event belongs to, with its own record, retries and undo. [`Service::named`](crate::Service::named)
//! begins a service, and [`ServiceBuilder::on`](crate::service::ServiceBuilder::on) says what it does on an event:
//!
//! | after `.on::<Event>()` | what the service does |
//! |---|---|
//! | [`run::<step>()`](OnEvent::run), [`run_with`](OnEvent::run_with) | runs the step, once per saga |
//! | [`run_per_event::<step>()`](OnEvent::run_per_event), [`run_per_event_with`](OnEvent::run_per_event_with) | runs the step, once per event |
//! | [`undo::<step>()`](OnEvent::undo) | undoes the step, once; a step that was not done yet gets a tombstone |
//! | [`tombstone::<step>()`](OnEvent::tombstone) | gives the step a tombstone if it was not done yet; undoes nothing |
//! | [`deadline::<pivot, Passed>(..)`](OnEvent::deadline) | after a time gives a pivot that was not done a tombstone, and publishes `Passed` |
//! | [`mark_begun()`](OnEvent::mark_begun), [`mark_completed()`](OnEvent::mark_completed), [`mark_compensated()`](OnEvent::mark_compensated) | notes it in the timeline of the saga |
//!
//! Events arrive in any order, and more than once. A step is still done once, since its record prevents a second time. An undo
//! that arrives before its step leaves a tombstone. A step that reads the output of another one waits for it.
//!
//! No service knows the whole saga. One of them, or one of its own, may **follow** it: it marks sagas by events, the others
//! name it with [`reports_to`](crate::service::ServiceBuilder::reports_to), and
//! [`SagaQuery::timeline`](crate::engine::SagaQuery::timeline) shows the joined timeline. It is a view: no decision depends
//! on it.
//!
//! What an operator looks at, and where:
//!
//! | question | answer |
//! |---|---|
//! | what is the status of the whole saga, and what happened when? | [`SagaQuery::timeline`](crate::engine::SagaQuery::timeline) by its key, in the store of the service that follows it |
//! | which sagas are there? | [`SagaQuery::timelines`](crate::engine::SagaQuery::timelines), in the same store |
//! | what is the state of one step, with its attempts and its errors? | [`SagaQuery::status`](crate::engine::SagaQuery::status) by `key>step`, in the store of the service that does it; [`list`](crate::engine::SagaQuery::list) has it among the sagas |
//! | what is stuck? | a timeline says which step is stuck; the operator of that service acts on `key>step` |

pub use crate::service::event_step::EventStep;
pub use crate::service::on_event::{EventInput, OnEvent};
