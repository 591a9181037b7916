//! Reservations in SQL: SQLite and PostgreSQL, and the transaction of a saga's step.

mod database;
#[cfg(feature = "postgres")]
mod group;
#[cfg(feature = "postgres")]
mod lanes;
mod overdue;
mod perform;
mod reservations;
mod rows;
mod schema;
#[cfg(feature = "postgres")]
mod shared;
mod statements;
mod tidying;
mod transactions;
mod work;

pub use self::perform::perform_in;
pub use self::reservations::SqlReservations;
pub use self::schema::create_tables;
