//! The rows that a store keeps, and the plain values in them.

pub(super) mod expiry;
pub(super) mod failing;
pub(super) mod history;
pub(super) mod timestamp;
pub(super) mod values;
pub(super) mod work_row;
