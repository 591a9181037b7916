use std::time::Duration;

use clap::Args;
use saga_cli::parse_duration;
use saga_core::Settings;

/// The lease and the time for a reply. Without them the runtime's own settings hold.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct TimesArgs {
    /// The lease of a step. A process without a heartbeat for this time, or for 10 s if that is shorter, counts as dead
    /// [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = lease)]
    pub lease: Option<Duration>,
    /// How long a command to another service may be without a reply until it is sent again [default: 30s]
    #[arg(long = "answer-within", value_name = "TIME", value_parser = parse_duration)]
    pub reply_timeout: Option<Duration>,
}

impl TimesArgs {
    /// Changes the runtime's settings to what was given.
    pub fn apply(self, settings: &mut Settings) {
        if let Some(lease) = self.lease {
            settings.lease_ttl = lease;
            settings.member_ttl = settings.member_ttl.min(lease);
        }
        if let Some(reply_timeout) = self.reply_timeout {
            settings.reply_timeout = reply_timeout;
        }
    }
}

/// The shortest lease: a process says that it is alive a few times within one.
const LEASE_MIN: Duration = Duration::from_millis(300);

fn lease(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .and_then(|lease| if lease < LEASE_MIN { Err("a lease is at least 300ms".to_owned()) } else { Ok(lease) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_not_too_short() {
        assert!(lease("299ms").is_err() && lease("300ms").is_ok());
    }
}
