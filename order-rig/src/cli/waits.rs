use std::time::Duration;

use clap::Args;
use saga_cli::parse_duration;

/// How long it waits for what is away.
#[derive(Debug, Clone, Copy, Args)]
pub struct WaitArgs {
    /// How long to wait for a database that is away, at the start and while orders are started. One that is full is
    /// waited for until it has room
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub wait_for_database: Duration,
    /// How long to wait at the start for a broker that is away
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub wait_for_broker: Duration,
    /// How long to wait at the start for services outside that are away
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub wait_for_outside: Duration,
}
