use std::time::Duration;

use clap::Args;
use saga_cli::parse_duration;

/// How long to wait for servers that are down.
#[derive(Debug, Clone, Copy, Args)]
pub struct WaitArgs {
    /// How long to wait for a database that is down, at the start and while orders are started. A full database is waited
    /// for until it has room
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub wait_for_database: Duration,
    /// How long to wait at the start for a broker that is down
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub wait_for_broker: Duration,
    /// How long to wait at the start for external services that are down
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub wait_for_outside: Duration,
}
