//! Sagas for ordinary async functions.

pub mod env;
pub mod key;
pub mod store;
pub mod transport;
