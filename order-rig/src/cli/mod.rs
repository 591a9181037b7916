//! The command line.

mod admin;
mod command;
mod outside;
mod retention;
mod run;
mod service;
mod times;
mod verify;
mod waits;

pub use admin::AdminArgs;
pub use command::{Cli, Command};
pub use outside::OutsideArgs;
pub use retention::RetentionArgs;
pub use run::{OrdersArgs, RunArgs, StoreArgs};
pub use service::{ServiceArgs, ServiceName};
pub use times::TimesArgs;
pub use verify::VerifyArgs;
pub use waits::WaitArgs;
