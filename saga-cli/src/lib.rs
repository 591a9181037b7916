#![doc = include_str!("../README.md")]

mod action;
mod admin;
mod args;
mod audit;
mod bulk;
mod command;
mod control;
mod dead_letters;
mod list;
mod open_store;
mod outbox;
mod output;
mod plain;
mod plan_file;
mod retention;
mod run;
mod show;
mod stuck;
mod tenant_admin;

pub use admin::Admin;
pub use args::parse_duration;
pub use command::Command;
pub use open_store::OpenStore;
pub use output::{error_line, print, print_remark};
