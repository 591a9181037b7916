use std::{path::PathBuf, time::Duration};

use clap::Args;
use saga_cli::parse_duration;

use crate::place::DEFAULT_STORE;

/// What to audit.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The store with the shop's tables, and the book of the services outside beside it, as `run` takes it; given
    /// again, the stores of the other services
    #[arg(long = "store", value_name = "URL", default_value = DEFAULT_STORE)]
    pub stores: Vec<String>,
    /// How long what is under way may take to come to rest
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5s")]
    pub within: Duration,
    /// Compare what was in stock at first with these products as well, as `run` was given them
    #[arg(long, value_name = "FILE")]
    pub products: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}
