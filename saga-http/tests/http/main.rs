//! The client side, the status, and the checked-in OpenAPI file.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod client;
mod openapi;
mod status;
