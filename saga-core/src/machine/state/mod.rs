//! What is decided about: the state of a saga and of its steps, and the shape of its definition.

pub(super) mod failure;
mod item_lookup;
pub(super) mod items;
pub(super) mod remote;
mod report;
pub(super) mod shape;
pub(super) mod state;
mod state_codec;
pub(super) mod step_state;
pub(super) mod timer;
