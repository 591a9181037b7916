//! Conformance suites, a seeded simulation and crash exploration for sagas, stores and transports.

pub mod checker;
pub mod sim;
