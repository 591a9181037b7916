//! The command line.

use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use saga_core::store::Status;

use crate::{
    outside::{Journal, LateCalls, Manners},
    place::DEFAULT_STORE,
};

/// Runs orders through a saga: place, reserve, charge, ship, confirm; or undo what was done.
///
/// It exits with 0 when all went well, 1 when something needs a person, 2 when it could not do what was asked, and
/// 130 when it was interrupted.
#[derive(Debug, Parser)]
#[command(name = "order-saga", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; to run the orders where nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to run the orders.
    #[command(flatten)]
    pub run: RunArgs,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the orders (the default)
    Run(RunArgs),
    /// Audit the shop's tables and the books of the services outside
    Verify(VerifyArgs),
    /// Show what happened to one saga, step by step
    Show(ShowArgs),
    /// List the sagas
    List(ListArgs),
    /// Print the saga definition as Mermaid
    Graph,
    /// Serve the payment gateway and the carrier as a process of their own
    Outside(OutsideArgs),
}

impl Command {
    /// The URL of the store that it is about.
    pub fn store(&self) -> &str {
        match self {
            Self::Run(args) => &args.store.store,
            Self::Verify(args) => &args.store.store,
            Self::Show(args) => &args.store.store,
            Self::List(args) => &args.store.store,
            Self::Outside(args) => &args.store.store,
            Self::Graph => DEFAULT_STORE,
        }
    }
}

/// How to run the orders.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Orders as JSON lines, - for standard input [default: the sample that the program brings along]
    #[arg(long, value_name = "FILE")]
    pub orders: Option<PathBuf>,
    /// Products as JSON lines [default: those of the sample]
    #[arg(long, value_name = "FILE")]
    pub products: Option<PathBuf>,
    /// Where to keep everything.
    #[command(flatten)]
    pub store: StoreArgs,
    /// How messages travel: memory: or amqp://USER:PASSWORD@HOST:PORT/VHOST
    #[arg(long, value_name = "URL", default_value = "memory:")]
    pub transport: String,
    /// The gateway and the carrier, as `order-saga outside` prints it [default: in this process]
    #[arg(long, value_name = "URL")]
    pub outside: Option<String>,
    /// What the gateway and the carrier do in this process is decided by this and the key of a call
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// How many orders may be under way at once; the more there are, the more of them share a commit
    #[arg(long, value_name = "N", default_value = "256")]
    pub concurrency: NonZeroUsize,
    /// Print the result as one JSON object on the last line
    #[arg(long)]
    pub json: bool,
}

const DEFAULT_SEED: u64 = 1;

/// Where everything is kept.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// Where to keep everything: sqlite:FILE, with the book of the services outside beside it, or
    /// postgres://USER:PASSWORD@HOST:PORT/DATABASE, with that book in this folder
    #[arg(long, value_name = "URL", default_value = DEFAULT_STORE)]
    pub store: String,
}

/// What to audit.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What to show.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The key: the order's id
    pub key: String,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// What to list.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only those that stand there
    #[arg(long, value_name = "S")]
    pub status: Option<StatusArg>,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Where a saga stands.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[expect(missing_docs, reason = "the words are the runtime's own")]
pub enum StatusArg {
    Running,
    Compensating,
    Completed,
    Compensated,
    Stuck,
}

impl From<StatusArg> for Status {
    fn from(status: StatusArg) -> Self {
        match status {
            StatusArg::Running => Self::Running,
            StatusArg::Compensating => Self::Compensating,
            StatusArg::Completed => Self::Completed,
            StatusArg::Compensated => Self::Compensated,
            StatusArg::Stuck => Self::Stuck,
        }
    }
}

/// How to serve the services outside.
#[derive(Debug, Args)]
pub struct OutsideArgs {
    /// Where to listen, such as 127.0.0.1:0 for any free port
    #[arg(long, value_name = "ADDR")]
    pub listen: SocketAddr,
    /// The store whose book this is.
    #[command(flatten)]
    pub store: StoreArgs,
    /// What befalls a call is decided by this and its key
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Keep calls waiting for seconds, or until their undo has come, under so many of a thousand keys
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub hold: u32,
    /// Carry out calls that come after their undo, as services do that do not honour keys
    #[arg(long)]
    pub no_bar: bool,
    /// Write each call down, with its time
    #[arg(long)]
    pub journal: bool,
}

impl OutsideArgs {
    /// What the services are to be like.
    pub fn manners(&self) -> Manners {
        Manners {
            held_per_mille: self.hold,
            late_calls: if self.no_bar { LateCalls::CarriedOut } else { LateCalls::Refused },
            journal: if self.journal { Journal::Calls } else { Journal::Changes },
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn running_is_what_happens_where_nothing_is_said() {
        let cli = Cli::parse_from(["order-saga", "--orders", "-", "--json"]);
        assert!(cli.command.is_none() && cli.run.json);
        let cli = Cli::parse_from(["order-saga", "run", "--concurrency", "1"]);
        assert!(matches!(cli.command, Some(Command::Run(args)) if args.concurrency.get() == 1));
    }
}
