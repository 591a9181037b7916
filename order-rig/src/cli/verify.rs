use std::{path::PathBuf, time::Duration};

use clap::Args;
use saga_cli::parse_duration;

use crate::place::DEFAULT_STORE;

/// What to audit.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The store with the shop's tables, with the journal of the external services, as in `run`. Repeat the option for the
    /// stores of the other services
    #[arg(long = "store", value_name = "URL", default_value = DEFAULT_STORE)]
    pub stores: Vec<String>,
    /// How long to wait for running work to end
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5s")]
    pub within: Duration,
    /// Also compare the initial stock with these products, as given to `run`
    #[arg(long, value_name = "FILE")]
    pub products: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}
