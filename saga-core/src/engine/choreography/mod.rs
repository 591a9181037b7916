//! Steps that events ask for: what an event that arrives means here, and which events tell of a step.

mod deadline;
mod reactions;
mod timeline;
mod told;

pub(crate) use self::reactions::for_service;
pub(crate) use self::timeline::{TIMELINES, timeline_key};
pub(crate) use self::told::{tell_of_success, tellable};
