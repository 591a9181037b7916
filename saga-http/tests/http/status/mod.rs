//! The status routes on every store: who sees what, and when a client that waits is answered.

mod dead_letters;
mod events;
mod fixture;
mod leaving;
mod list;
mod one;
mod schema;
mod stores;
mod tenants;
mod waiting;
