//! A trip is booked as a whole or not at all: credit, flights, a hotel, a car, and for expensive trips an approval.
//!
//! Read `saga.rs` first: it is the process. Then `steps.rs`, `hotels.rs` and `cars.rs`, the functions that it is made of, and
//! `http.rs`, the interface. `app.rs` starts the runtimes, `providers.rs` calls the companies outside, and `companies.rs` stands for
//! them.

#![allow(missing_docs, missing_debug_implementations, reason = "an application, whose types are what their names say")]

pub mod app;
pub mod cars;
pub mod companies;
pub mod hotels;
pub mod http;
pub mod providers;
pub mod saga;
pub mod steps;
pub mod trip;
