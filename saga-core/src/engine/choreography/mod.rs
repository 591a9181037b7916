//! Sagas that are wired by events.

mod choreography;
mod deadline;
mod reactions;
mod timeline;

pub(crate) use self::choreography::Choreography;
