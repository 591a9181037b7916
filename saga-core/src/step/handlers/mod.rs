//! How a step, its compensation and its resolution are called.

pub(super) mod compensation;
pub(super) mod handler;
pub(super) mod resolution;
pub(super) mod resolve;
pub(super) mod runs_on;
pub(super) mod undo;
