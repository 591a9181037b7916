use std::{num::NonZeroUsize, path::PathBuf};

use clap::Args;
use saga_cli::parse_duration;
use tokio::time::Instant;

use super::{RetentionArgs, TimesArgs, WaitArgs};
use crate::place::DEFAULT_STORE;

/// How to run the orders.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Which orders.
    #[command(flatten)]
    pub orders: OrdersArgs,
    /// Where to keep everything.
    #[command(flatten)]
    pub store: StoreArgs,
    /// How messages travel: memory:, amqp://USER:PASSWORD@HOST:PORT[,HOST:PORT..]/VHOST,
    /// kafka://HOST:PORT[,HOST:PORT..] or sqs:PREFIX
    #[arg(long, value_name = "URL", default_value = "memory:")]
    pub transport: String,
    /// The gateway and the carrier, as `order-rig outside` prints it [default: in this process]
    #[arg(long, value_name = "URL")]
    pub outside: Option<String>,
    /// The seed that decides, with the key of a call, how the gateway and the carrier in this process behave
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// How long it waits for what is away.
    #[command(flatten)]
    pub waits: WaitArgs,
    /// The lease and the time for a reply.
    #[command(flatten)]
    pub times: TimesArgs,
    /// How long what has ended is kept.
    #[command(flatten)]
    pub retention: RetentionArgs,
}

pub(super) const DEFAULT_SEED: u64 = 1;

/// Which orders, and how they are run.
#[derive(Debug, Args)]
pub struct OrdersArgs {
    /// Orders as JSON lines, - for standard input [default: the built-in sample]
    #[arg(long, value_name = "FILE")]
    pub orders: Option<PathBuf>,
    /// Products as JSON lines [default: those of the sample]
    #[arg(long, value_name = "FILE")]
    pub products: Option<PathBuf>,
    /// The most orders in flight; with more orders, more of them share a commit
    #[arg(long, value_name = "N", default_value = "256")]
    pub concurrency: NonZeroUsize,
    /// No order is started later than so long after the program began. If that leaves some out, the exit code is 3
    #[arg(long = "start-within", value_name = "TIME", value_parser = until)]
    pub starts_until: Option<Instant>,
    /// Print the result as one JSON object on the last line
    #[arg(long)]
    pub json: bool,
}

/// The time is counted from when the program reads its command line.
fn until(text: &str) -> Result<Instant, String> {
    parse_duration(text).map(|within| Instant::now() + within)
}

/// Where everything is kept.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// The store: sqlite:FILE, with the journal of the external services beside it, or
    /// postgres://USER:PASSWORD@HOST:PORT/DATABASE, with this journal in the current folder. Append ?pgbouncer=true behind
    /// PgBouncer in transaction mode
    #[arg(long, value_name = "URL", default_value = DEFAULT_STORE)]
    pub store: String,
}
