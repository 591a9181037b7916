//! Choreography: reacts to events, with the steps of this service.

mod choreography;
mod deadline;
mod reactions;
mod timeline;

pub(crate) use self::choreography::Choreography;
