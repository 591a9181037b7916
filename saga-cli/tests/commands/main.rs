//! The commands as an application mounts them: on a store in memory, with its own definitions.
#![allow(clippy::expect_used, reason = "a test ends where something fails that is not under test")]

mod closed_pipe;
mod command_line;
mod full_output;
mod messages;
mod messages_in_store;
mod sagas;
mod shop;
mod sub_sagas;
mod tenants;
mod text_from_outside;
