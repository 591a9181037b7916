//! Rows as values of the contract, and values as arrays for a statement.

pub(super) mod arrays;
pub(super) mod definition_numbers;
pub(super) mod expiry;
pub(super) mod id_counter;
pub(super) mod rows;
