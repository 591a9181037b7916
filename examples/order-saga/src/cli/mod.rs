//! The command line.

mod command;
mod look;
mod run;
mod service;
mod times;

pub use command::{Cli, Command};
pub use look::{ListArgs, OutsideArgs, ShowArgs, StatusArg, VerifyArgs};
pub use run::{OrdersArgs, RunArgs, StoreArgs};
pub use service::{ServiceArgs, ServiceName};
pub use times::TimesArgs;
