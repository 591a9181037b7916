//! The same operations over HTTP and JSON.

mod extract;
mod messages;
mod operations;
mod problem;
mod resources;
mod routes;
mod store;

pub(crate) use self::routes::routes;
