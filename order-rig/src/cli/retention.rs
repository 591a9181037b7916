use std::time::Duration;

use clap::Args;
use saga_cli::parse_duration;
use saga_core::{Retention, Settings};

/// The runtime keeps no start for longer by itself.
const STARTS_REPEAT_MAX: Duration = Duration::from_hours(24);

/// How long is kept what has ended. Without them all of it is kept for ever.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct RetentionArgs {
    /// How long an order is kept in full after its end. Then it is archived, and only its key is kept
    #[arg(long = "keep", value_name = "TIME", value_parser = parse_duration, requires = "keys")]
    pub full: Option<Duration>,
    /// How long the key of an order is kept after its end
    #[arg(long = "keep-keys", value_name = "TIME", value_parser = parse_duration, requires = "full")]
    pub keys: Option<Duration>,
    /// How long the ids of messages are kept [default: 30 days]
    #[arg(long = "keep-ids", value_name = "TIME", value_parser = parse_duration)]
    pub message_ids: Option<Duration>,
    /// By how much the clocks of two databases may differ [default: 5m]
    #[arg(long = "clock-skew", value_name = "TIME", value_parser = parse_duration)]
    pub clock_skew_max: Option<Duration>,
    /// After how long an order that cannot be purged yet is tried again [default: 1h]
    #[arg(long = "purge-retry", value_name = "TIME", value_parser = parse_duration)]
    pub purge_retry_interval: Option<Duration>,
}

impl RetentionArgs {
    /// Changes the runtime's settings to what was given.
    pub fn apply(self, settings: &mut Settings) {
        if let Some((full, keys)) = self.full.zip(self.keys) {
            settings.default_retention = Some(Retention::of(full).key(keys));
            settings.starts_repeat_within = keys.min(STARTS_REPEAT_MAX);
        }
        if let Some(message_ids) = self.message_ids {
            settings.retention = message_ids;
            settings.closed_asked_after = settings.closed_asked_after.map(|after| after.min(message_ids / 2));
        }
        if let Some(clock_skew_max) = self.clock_skew_max {
            settings.clock_skew_max = clock_skew_max;
        }
        if let Some(purge_retry_interval) = self.purge_retry_interval {
            settings.purge_retry_interval = purge_retry_interval;
        }
    }
}
