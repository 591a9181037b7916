//! Reservations whose holds are in Redis, and whose capacities and confirmations are in SQL.

mod confirming;
mod holds;
mod load_progress;
mod loading;
mod mark_rounds;
mod marks;
mod operations;
mod points;
mod reply;
mod requests;
mod reservations;
mod reserving;
mod resources;
mod scripts;
mod tidying;

#[cfg(feature = "test-clock")]
pub use self::points::Point;
pub use self::reservations::RedisReservations;
