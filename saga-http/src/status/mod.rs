//! The status of sagas over HTTP, for the callers that the application lets see it.

mod changes;
mod dead_letter;
mod dead_letters;
mod etag;
mod events;
mod list;
mod long_poll;
mod openapi;
mod parameters;
mod polling;
mod prefer;
mod routes;
mod sagas;
mod schema;
mod service;
mod shown;
mod view;

pub use self::openapi::openapi;
pub(crate) use self::prefer::wait as preferred_wait;
pub use self::routes::{StatusRoutes, status_routes};
pub(crate) use self::shown::Shown;
