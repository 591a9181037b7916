//! The command line.

mod bulk;
mod command;
mod desk;
mod letters;
mod look;
mod outbox;
mod run;
mod service;
mod times;
mod waits;

pub use bulk::{BulkActionArg, BulkCommand, CarryOutArgs, PlanArgs};
pub use command::{Cli, Command};
pub use desk::{ActArgs, AuditArgs, DeskArgs, EndArg, ForceArgs, RestartArgs, RetryArgs, SeenArgs, SkipArgs};
pub use letters::{DecideArgs, LetterArgs, LetterStateArg, LettersCommand, LettersListArgs, ReplayArgs};
pub use look::{ListArgs, OutsideArgs, ShowArgs, StatusArg, VerifyArgs};
pub use outbox::{DiscardArgs, OutboxCommand, OutboxListArgs, ReleaseArgs};
pub use run::{OrdersArgs, RunArgs, StoreArgs};
pub use service::{ServiceArgs, ServiceName};
pub use times::TimesArgs;
pub use waits::WaitArgs;
