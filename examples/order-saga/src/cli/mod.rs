//! The command line.

mod cancel;
mod command;
mod letters;
mod look;
mod outbox;
mod run;
mod service;
mod times;

pub use cancel::CancelArgs;
pub use command::{Cli, Command};
pub use letters::{DecideArgs, LetterArgs, LetterStateArg, LettersCommand, LettersListArgs, ReplayArgs};
pub use look::{ListArgs, OutsideArgs, ShowArgs, StatusArg, VerifyArgs};
pub use outbox::{DiscardArgs, OutboxCommand, OutboxListArgs, ReleaseArgs};
pub use run::{OrdersArgs, RunArgs, StoreArgs};
pub use service::{ServiceArgs, ServiceName};
pub use times::TimesArgs;
