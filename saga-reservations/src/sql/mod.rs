//! Reservations in SQL: SQLite and PostgreSQL, and the transaction of a saga's step.

mod database;
mod overdue;
mod perform;
mod reservations;
mod rows;
mod schema;
mod statements;
mod tidying;
mod work;

pub use self::perform::perform_in;
pub use self::reservations::SqlReservations;
pub use self::schema::create_tables;
