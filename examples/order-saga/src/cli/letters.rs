use clap::{Args, Subcommand, ValueEnum};
use saga_core::store::DeadLetterState;

use super::StoreArgs;

/// What to do with messages that could not be handled.
#[derive(Debug, Subcommand)]
pub enum LettersCommand {
    /// List them, oldest first
    List(LettersListArgs),
    /// Show one with all that came with it
    Show(LetterArgs),
    /// Hand one in again, as the same message: what it had caused before is not caused again
    Replay(ReplayArgs),
    /// Decide that one is not needed
    Discard(DecideArgs),
}

impl LettersCommand {
    /// The store that it is about.
    pub fn store(&self) -> &StoreArgs {
        match self {
            Self::List(args) => &args.store,
            Self::Show(args) => &args.store,
            Self::Replay(args) => &args.store,
            Self::Discard(args) => &args.store,
        }
    }
}

/// Which dead letters to list.
#[derive(Debug, Args)]
pub struct LettersListArgs {
    /// Only those in this state
    #[arg(long, value_name = "S", default_value = "open")]
    pub state: LetterStateArg,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// What became of a dead letter.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[expect(missing_docs, reason = "the words are the runtime's own")]
pub enum LetterStateArg {
    Open,
    Replayed,
    Discarded,
    /// Whatever became of it.
    All,
}

impl From<LetterStateArg> for Option<DeadLetterState> {
    fn from(state: LetterStateArg) -> Self {
        match state {
            LetterStateArg::Open => Some(DeadLetterState::Open),
            LetterStateArg::Replayed => Some(DeadLetterState::Replayed),
            LetterStateArg::Discarded => Some(DeadLetterState::Discarded),
            LetterStateArg::All => None,
        }
    }
}

/// Which dead letter.
#[derive(Debug, Args)]
pub struct LetterArgs {
    /// Its number, as the list has it
    pub id: i64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Which dead letter to hand in again.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Its number, as the list has it
    pub id: i64,
    /// Why; it is kept with the letter
    #[arg(long, value_name = "TEXT", default_value = "replayed from the command line")]
    pub reason: String,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Which dead letter to discard.
#[derive(Debug, Args)]
pub struct DecideArgs {
    /// Its number, as the list has it
    pub id: i64,
    /// Why; it is kept with the letter
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}
