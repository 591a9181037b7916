use clap::Subcommand;

use crate::args::ActionArgs;
use crate::audit::AuditArgs;
use crate::bulk::BulkCommand;
use crate::dead_letters::DeadLettersCommand;
use crate::list::ListArgs;
use crate::outbox::OutboxCommand;
use crate::show::ShowArgs;
use crate::stuck::{ForceArgs, RestartArgs, RetryArgs, SkipArgs};

/// The operator's commands. An application adds them to its own with `#[command(flatten)]`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what happened to one saga, step by step
    Show(ShowArgs),
    /// List the sagas
    List(ListArgs),
    /// Cancel a saga: nothing new of it begins, and what was done is undone
    Cancel(ActionArgs),
    /// Pause a saga: nothing new of it begins until it is resumed
    Pause(ActionArgs),
    /// Let a paused saga go on
    Resume(ActionArgs),
    /// Try a saga again: what is stuck, or what waits for its next attempt
    Retry(RetryArgs),
    /// Go past the step, or the undo, that a saga is stuck at
    Skip(SkipArgs),
    /// End a stuck saga as it is
    Force(ForceArgs),
    /// Start a saga instead of one that has ended, from a step on
    Restart(RestartArgs),
    /// Act on many sagas: plan it first, then carry the plan out
    #[command(subcommand)]
    Bulk(BulkCommand),
    /// List what people did with sagas, the latest first: who, when and why
    Audit(AuditArgs),
    /// Messages that could not be handled: list, show, replay, discard
    #[command(subcommand)]
    DeadLetters(DeadLettersCommand),
    /// Messages that wait to be sent: list, release, discard
    #[command(subcommand)]
    Outbox(OutboxCommand),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_sound() {
        Command::augment_subcommands(clap::Command::new("shop")).debug_assert();
    }
}
