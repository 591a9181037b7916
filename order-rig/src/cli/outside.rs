use std::net::SocketAddr;

use clap::Args;

use super::run::{DEFAULT_SEED, StoreArgs};
use crate::outside::{Journal, LateCalls, Manners};

/// How to serve the external services.
#[derive(Debug, Args)]
pub struct OutsideArgs {
    /// Where to listen, such as 127.0.0.1:0 for any free port
    #[arg(long, value_name = "ADDR")]
    pub listen: SocketAddr,
    /// The store to which the journal belongs.
    #[command(flatten)]
    pub store: StoreArgs,
    /// The seed that decides, with its key, how a call fails
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Of a thousand keys, how many have calls that wait for seconds, or until their undo has arrived
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub hold: u32,
    /// Execute calls that arrive after their undo, as services do that do not honour keys
    #[arg(long)]
    pub no_bar: bool,
    /// Log each call with its time
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
