use clap::Subcommand;

use crate::args::ActionArgs;
use crate::audit::AuditArgs;
use crate::bulk::BulkCommand;
use crate::dead_letters::DeadLettersCommand;
use crate::list::ListArgs;
use crate::outbox::OutboxCommand;
use crate::retention::RetentionCommand;
use crate::show::ShowArgs;
use crate::stuck::{ForceArgs, RestartArgs, RetryArgs, SkipArgs};

/// What a command does.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Show what happened to one saga and its sub-sagas, step by step
    Show(ShowArgs),
    /// List the sagas
    List(ListArgs),
    /// Cancel a saga: no new step begins, and finished steps are undone
    Cancel(ActionArgs),
    /// Pause a saga: no new step begins until it is resumed
    Pause(ActionArgs),
    /// Resume a paused saga
    Resume(ActionArgs),
    /// Retry a saga: a stuck step, or a step that waits for its next attempt
    Retry(RetryArgs),
    /// Skip the step or the undo at which a saga is stuck
    Skip(SkipArgs),
    /// Force the end of a stuck saga
    Force(ForceArgs),
    /// Restart a saga that has ended as a new saga, from a step on
    Restart(RestartArgs),
    /// Act on many sagas: write a plan first, then execute it
    #[command(subcommand)]
    Bulk(BulkCommand),
    /// List the actions of operators with actor, time and reason, the latest first
    Audit(AuditArgs),
    /// List, show, replay or discard messages that could not be handled
    #[command(subcommand)]
    DeadLetters(DeadLettersCommand),
    /// List, release or discard messages that wait to be sent
    #[command(subcommand)]
    Outbox(OutboxCommand),
    /// Show how long ended sagas are kept, and what is due to be purged; exempt or purge one
    #[command(subcommand)]
    Retention(RetentionCommand),
}
