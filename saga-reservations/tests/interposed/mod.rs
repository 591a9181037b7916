//! Reservations with a test between them and their caller.

mod interposed;

pub(crate) use self::interposed::{Between, Interposed};
