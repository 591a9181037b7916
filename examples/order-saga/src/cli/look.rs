use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use saga_core::store::Status;

use super::{
    run::{DEFAULT_SEED, StoreArgs},
    times::time,
};
use crate::{
    outside::{Journal, LateCalls, Manners},
    place::DEFAULT_STORE,
};

/// What to audit.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The store with the shop's tables, and the book of the services outside beside it, as `run` takes it; given
    /// again, the stores of the other services
    #[arg(long = "store", value_name = "URL", default_value = DEFAULT_STORE)]
    pub stores: Vec<String>,
    /// How long what is under way may take to come to rest
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5s")]
    pub within: Duration,
    /// Compare what was in stock at first with these products as well, as `run` was given them
    #[arg(long, value_name = "FILE")]
    pub products: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What to show.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The key: the order's id; in the store of a service that did a step of it, ID>STEP
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
    Paused,
}

impl From<StatusArg> for Status {
    fn from(status: StatusArg) -> Self {
        match status {
            StatusArg::Running => Self::Running,
            StatusArg::Compensating => Self::Compensating,
            StatusArg::Completed => Self::Completed,
            StatusArg::Compensated => Self::Compensated,
            StatusArg::Stuck => Self::Stuck,
            StatusArg::Paused => Self::Paused,
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
