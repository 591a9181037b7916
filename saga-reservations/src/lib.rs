#![doc = include_str!("../README.md")]

mod book;
mod client;
mod contract;
#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(feature = "server")]
mod http;
mod memory;
#[cfg(all(feature = "redis", any(feature = "sqlite", feature = "postgres")))]
mod redis;
#[cfg(feature = "server")]
pub mod serve;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql;
pub mod steps;
mod sweeper;

pub use self::book::{
    Action, Book, CAPACITY_MAX, FencingToken, InvalidName, InvalidReserve, LINES_MAX, Late, Line, NAME_BYTES_MAX,
    Operation, Reason, Refusal, Reservation, ReservationKey, Reserve, Resource, ResourceName, State, TTL_MAX, TTL_MIN,
};
pub use self::client::{Held, HoldLost, ReservationsClient};
pub use self::contract::{Reservations, ReservationsError, ReservationsStore};
pub use self::memory::MemoryReservations;
#[cfg(all(feature = "redis", any(feature = "sqlite", feature = "postgres"), feature = "test-clock"))]
pub use self::redis::Point;
#[cfg(all(feature = "redis", any(feature = "sqlite", feature = "postgres")))]
pub use self::redis::RedisReservations;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use self::sql::{SqlReservations, create_tables, perform_in};
pub use self::sweeper::Sweeper;
