//! What a service does for the sagas of others: it hosts their steps, and reacts to their events.

mod builder;
mod error;
pub(crate) mod event_step;
pub(crate) mod on_event;
mod reaction;

pub use self::builder::{Service, ServiceBuilder};
pub use self::error::{ServiceError, ServiceProblem};
pub(crate) use self::reaction::{Reaction, Reacts};
