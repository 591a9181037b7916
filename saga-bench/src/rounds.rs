//! How a benchmark is run whose contenders take turns in rounds.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Requests a round. A request of `reservations` is a hold and its confirmation; `dedupe` has as many pairs.
    #[arg(long, default_value_t = 4_000)]
    pub(crate) requests: u32,
    /// Requests in flight at a time.
    #[arg(long, default_value_t = 64)]
    pub(crate) in_flight: u32,
    /// Rounds. Each contender runs once a round.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(3..))]
    pub(crate) rounds: u32,
    /// One JSON object a figure instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Ends with an error if a target is not reached.
    #[arg(long)]
    pub(crate) require: bool,
}
