//! What several commands take.

use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use saga_core::store::{Status, Timestamp};
use serde_json::Value;

/// Which saga, and why.
#[derive(Debug, Args)]
pub(crate) struct ActionArgs {
    /// The saga's key; in the store of a service that hosts a step of it, KEY>STEP
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) actor: ActorArgs,
}

/// Why something is done, and by whom.
#[derive(Debug, Args)]
pub(crate) struct ActorArgs {
    /// The reason, which is stored with the saga
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// The name of the operator, which is stored with the saga [default: the user of the operating system]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

impl ActorArgs {
    /// The name that is stored with the action.
    pub(crate) fn name(&self) -> String {
        let user = || ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        self.by.clone().or_else(user).unwrap_or_else(|| "unknown".to_owned())
    }
}

/// Which saga, as it was seen, and why.
#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    #[command(flatten)]
    pub(crate) action: ActionArgs,
    /// The revision that `show` printed: if the saga has moved since, nothing is done [default: the current one]
    #[arg(long, value_name = "N")]
    pub(crate) revision: Option<u64>,
}

/// Reads the status of a saga. The help and the errors of clap list them.
pub(crate) fn parse_status() -> impl TypedValueParser<Value = Status> {
    one_of(Status::ALL.map(|status| (status.as_str(), status)))
}

/// Reads one of these words.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let find = move |word: String| words.into_iter().find(|(known, _)| *known == word).map(|(_, value)| value);
    PossibleValuesParser::new(words.map(|(word, _)| word)).try_map(move |word| find(word).ok_or("another word"))
}

/// Reads a duration such as `500ms`, `2s` or `1m`.
///
/// # Errors
///
/// A sentence that says how a duration is written.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
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

/// Reads a day such as `2026-01-31`: its beginning in UTC.
pub(crate) fn parse_day(text: &str) -> Result<Timestamp, String> {
    Timestamp::from_rfc3339(&format!("{text}T00:00:00Z")).ok_or_else(|| "write a day such as 2026-01-31".to_owned())
}

pub(crate) fn parse_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("this is no JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_one_of_the_calendar() {
        for (text, at) in [("1970-01-01", "1970-01-01T00:00:00.000000Z"), ("2024-02-29", "2024-02-29T00:00:00.000000Z")]
        {
            assert_eq!(parse_day(text).unwrap().to_string(), at);
        }
        for text in [
            "",
            "2025-02-29",
            "2025-13-01",
            "2025-1-1",
            "2025-00-10",
            "2025-01-01T00:00",
            "2025-01-01T00:00:00Z2025-01-01",
            "20250101",
            "2025-01-3\u{e9}",
        ] {
            assert!(parse_day(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_has_a_unit() {
        for (text, millis) in [("500ms", 500), ("2s", 2_000), ("1m", 60_000)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)));
        }
        for text in ["", "2", "0s", "-1s", "1h", "s", "1.5s", "99999999999999999999s", "9999999999999999999s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
