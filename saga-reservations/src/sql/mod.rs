//! Reservations in SQL: SQLite and PostgreSQL, and the transaction of a saga's step.

#[cfg(feature = "postgres")]
mod connection;
mod database;
#[cfg(feature = "redis")]
mod epochs;
#[cfg(feature = "postgres")]
mod group;
#[cfg(feature = "postgres")]
mod lanes;
#[cfg(feature = "redis")]
mod look;
mod overdue;
mod perform;
mod reservations;
mod rows;
mod schema;
#[cfg(feature = "postgres")]
mod shared;
mod statements;
mod task;
mod tidying;
mod transactions;
mod work;

#[cfg(feature = "redis")]
pub(crate) use self::look::{Found, Question};
pub use self::perform::perform_in;
pub use self::reservations::SqlReservations;
pub use self::schema::create_tables;
