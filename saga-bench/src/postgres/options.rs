use clap::Args;

use super::work::Work;

/// How the benchmark is run.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub(crate) struct Options {
    /// The works to measure; all of them where none is named.
    #[arg(long, value_enum, ignore_case = true, num_args = 1.., value_delimiter = ',')]
    pub(super) work: Vec<Work>,
    /// How many sagas of W are in flight at a time; 16, 64 and 256 where nothing is said.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) in_flight: Vec<u32>,
    /// How many rounds to run. Every contender runs once in each.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(3..))]
    pub(super) rounds: u32,
    /// Sagas of W that the runtime does in a round. Who is slower gets fewer, who is faster more, to run about as long.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    pub(super) sagas: u32,
    /// Measures the other runtimes as well, from the workspace `bench/peers`, which is built first.
    #[arg(long)]
    pub(super) peers: bool,
    /// Finished sagas in the tables of W-finished.
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    pub(super) finished: u32,
    /// Sagas that wait in the store of W-waiting.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    pub(super) waiting: u32,
    /// Leaves out the runs through a proxy that counts round trips.
    #[arg(long)]
    pub(super) no_round_trips: bool,
    /// One JSON object a figure instead of a table.
    #[arg(long)]
    pub(super) json: bool,
    /// Ends with an error if a target is not reached.
    #[arg(long)]
    pub(super) require: bool,
}
