//! PostgreSQL: the connection and the store of `saga-postgres`.

mod arguments;
mod conn;
mod rows;
mod time;
