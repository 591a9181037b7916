//! Operator commands for sagas: list, show, cancel, pause, resume, retry, skip, force and restart them, act on many
//! sagas by a plan, and handle dead letters and the outbox.
//!
//! The commands are clap subcommands. An application mounts them beside its own, with its own definitions, on any
//! store. The commands need no runtime: they write the decision, and a runtime on the same store carries it out.
//!
//! ```
//! use clap::Parser;
//! use saga_cli::{Admin, Command, OpenStore};
//! use saga_core::memory::MemoryStore;
//! use saga_core::{Saga, StepError, saga_step};
//!
//! #[derive(Parser)]
//! enum Cli {
//!     /// Serve the shop
//!     Serve,
//!     #[command(flatten)]
//!     Admin(Command),
//! }
//!
//! /// Where the sagas of this application are.
//! struct Orders(MemoryStore);
//!
//! impl OpenStore for Orders {
//!     type Store = MemoryStore;
//!
//!     fn name(&self) -> String {
//!         "memory".to_owned()
//!     }
//!
//!     async fn open(&self) -> anyhow::Result<MemoryStore> {
//!         Ok(self.0.clone())
//!     }
//!
//!     async fn open_read_only(&self) -> anyhow::Result<MemoryStore> {
//!         Ok(self.0.clone())
//!     }
//! }
//!
//! #[saga_step]
//! async fn confirm_order(_order: u32) -> Result<(), StepError> {
//!     Ok(())
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> anyhow::Result<()> {
//! let create_order: Saga<MemoryStore, u32> =
//!     Saga::named("create-order").input::<u32>().step::<confirm_order>().build()?;
//! let Cli::Admin(command) = Cli::parse_from(["shop", "list", "--status", "stuck"]) else { return Ok(()) };
//! let admin = Admin::new("shop", Orders(MemoryStore::new())).saga(&create_order);
//! let exit_code = admin.run(&command, &mut std::io::stdout()).await?;
//! # Ok(())
//! # }
//! ```

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
mod run;
mod show;
mod stuck;

pub use admin::Admin;
pub use args::parse_duration;
pub use command::Command;
pub use open_store::OpenStore;
pub use output::{error_line, print};
