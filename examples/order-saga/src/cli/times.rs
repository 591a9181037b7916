use std::time::Duration;

use clap::Args;
use saga_core::Settings;

/// How long it waits for whom. What is not given is as the runtime has it.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct TimesArgs {
    /// How long a step belongs to the process that took it; a process that is silent for as long counts as dead, and
    /// after 10 s in any case [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = lease)]
    pub lease: Option<Duration>,
    /// After how long without a reply a command to another service is sent again [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = time)]
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
    time(text).and_then(|lease| if lease < LEASE_MIN { Err("a lease is at least 300ms".to_owned()) } else { Ok(lease) })
}

/// Reads a time such as `500ms`, `2s` or `1m`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let millis = match &text[number.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => 0,
    };
    let time = number.parse::<u64>().ok().and_then(|number| number.checked_mul(millis)).filter(|millis| *millis > 0);
    time.map(Duration::from_millis).ok_or_else(|| "write a time such as 500ms, 2s or 1m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        for (text, millis) in [("500ms", 500), ("2s", 2_000), ("1m", 60_000)] {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)));
        }
        for text in ["", "2", "0s", "-1s", "1h", "s", "1.5s", "99999999999999999999s", "9999999999999999999s"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert!(lease("299ms").is_err() && lease("300ms").is_ok());
    }
}
