//! Steps in other services.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod between_services;
mod carried_locks;
mod first_subscription;
mod for_each_elsewhere;
mod forgotten_ids;
mod recovered_messages;
mod repeated_undos;
mod services;
mod transport_limits;
