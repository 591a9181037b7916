//! Stores and transports that break one clause each, on purpose: they prove that the suites bite.
//!
//! Each wraps the memory backend and keeps every other clause as far as the broken one allows.

mod arrivals;
mod body;
mod clock;
mod definitions;
mod flaw;
mod harness;
mod keys;
mod members;
mod outbox;
mod purge;
mod records;
mod sagas;
mod semantic_locks;
mod store;
mod transaction;
mod transport;
mod transport_flaw;
mod work;

pub use self::flaw::StoreFlaw;
pub use self::harness::FaultyHarness;
pub use self::store::FaultyStore;
pub use self::transport::FaultyTransport;
pub use self::transport_flaw::TransportFlaw;
