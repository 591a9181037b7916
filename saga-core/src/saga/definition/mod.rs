//! What the engine runs of a saga: its steps, and what each of them is made of.

pub(super) mod arm;
pub(super) mod definition;
pub(super) mod digest;
pub(super) mod emitted_events;
pub(super) mod erase;
mod hosted;
pub(super) mod idle;
pub(super) mod mapping;
pub(super) mod result_of;
pub(super) mod step_kinds;
