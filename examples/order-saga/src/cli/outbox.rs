use clap::{Args, Subcommand};

use super::StoreArgs;

/// What to do with what waits to be sent.
#[derive(Debug, Subcommand)]
pub enum OutboxCommand {
    /// Say how much waits and since when, and list the keys whose next message cannot be sent
    List(OutboxListArgs),
    /// Let the key of a message try again
    Release(ReleaseArgs),
    /// Give a message up, so that its key goes on behind it
    Discard(DiscardArgs),
}

impl OutboxCommand {
    /// The store that it is about.
    pub fn store(&self) -> &StoreArgs {
        match self {
            Self::List(args) => &args.store,
            Self::Release(args) => &args.store,
            Self::Discard(args) => &args.store,
        }
    }
}

/// How to list.
#[derive(Debug, Args)]
pub struct OutboxListArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Which key to release.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// The id of the message that could not be sent, as the list has it
    pub message: String,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Which message to give up.
#[derive(Debug, Args)]
pub struct DiscardArgs {
    /// The id of the message that could not be sent, as the list has it
    pub message: String,
    /// Why; it is kept with the message, among the dead letters
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}
