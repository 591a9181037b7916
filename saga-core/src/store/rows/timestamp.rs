//! Times of the store's clock.

use std::fmt;
use std::time::{Duration, SystemTime};

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// How long the part up to the seconds is.
const SECONDS_LENGTH: usize = "2026-11-27T14:45:23".len();
/// The longest fraction of a second, in digits.
const FRACTION_LENGTH_MAX: usize = 9;

/// A time of the store's clock: microseconds since 1970-01-01 00:00 UTC.
///
/// It is shown as RFC 3339 has it, and converts from and to [`SystemTime`].
///
/// ```
/// use saga_core::store::Timestamp;
///
/// assert_eq!(Timestamp(1_709_208_000_250_000).to_string(), "2024-02-29T12:00:00.250000Z");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
pub struct Timestamp(pub i64);

/// The first time of a store whose clock is an environment's: 2025-01-01 00:00 UTC.
const ORIGIN: Timestamp = Timestamp(1_735_689_600_000_000);

impl Timestamp {
    /// The time of a store whose clock is an [`Environment`](crate::env::Environment)'s: it begins with 2025-01-01 00:00 UTC,
    /// so that each run of a test shows the same times.
    pub fn of_environment(now: Duration) -> Self {
        Self(ORIGIN.0.saturating_add(i64::try_from(now.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Reads a time in UTC as RFC 3339 writes it, with at most nine digits behind the second: `2024-02-29T12:00:00.25Z`. Parts of a
    /// microsecond are dropped. `None` if the text is no such time.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let (whole, fraction) = text.strip_suffix('Z')?.split_at_checked(SECONDS_LENGTH)?;
        let seconds = seconds_since_1970(whole)?;
        let at = Self(seconds.checked_mul(MICROS_PER_SECOND)?.checked_add(micros(fraction)?)?);
        // A day that no month has, or a 25th hour, is written as another one.
        at.to_string().starts_with(whole).then_some(at)
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self(micros(since)),
            Err(before) => Self(micros(before.duration()).saturating_neg()),
        }
    }
}

impl From<Timestamp> for SystemTime {
    fn from(Timestamp(micros): Timestamp) -> Self {
        let distance = Duration::from_micros(micros.unsigned_abs());
        let time =
            if micros < 0 { Self::UNIX_EPOCH.checked_sub(distance) } else { Self::UNIX_EPOCH.checked_add(distance) };
        // Every platform has times of 292,000 years around 1970.
        time.unwrap_or(Self::UNIX_EPOCH)
    }
}

/// As RFC 3339 has it, in UTC, with six digits of the second.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(MICROS_PER_SECOND);
        let (day, second) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
        let (year, month, day) = date(day);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        let micros = self.0.rem_euclid(MICROS_PER_SECOND);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }
}

/// Year, month and day of a day counted from 1970-01-01, by the Gregorian calendar: `civil_from_days` of Howard Hinnant,
/// <https://howardhinnant.github.io/date_algorithms.html>.
fn date(day: i64) -> (i64, i64, i64) {
    // Counted from 0000-03-01, so that a leap day is the last of its year; 146,097 days are 400 years.
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

fn seconds_since_1970(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range)?;
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse::<i64>().ok() } else { None }
    };
    let days = days_since_1970(number(0..4)?, number(5..7)?, number(8..10)?);
    Some(((days * 24 + number(11..13)?) * 60 + number(14..16)?) * 60 + number(17..19)?)
}

/// The microseconds in a fraction of a second, such as `.832557`. What is less than one is left out.
fn micros(fraction: &str) -> Option<i64> {
    if fraction.is_empty() {
        return Some(0);
    }
    let digits = fraction.strip_prefix('.')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || digits.len() > FRACTION_LENGTH_MAX || !is_number {
        return None;
    }
    format!("{digits:0<6}").get(..6)?.parse().ok()
}

/// The inverse of [`date`]: `days_from_civil` of Howard Hinnant.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_as_rfc_3339_has_it() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_709_208_000, "2024-02-29T12:00:00.000000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.000000Z"),
        ] {
            assert_eq!(Timestamp(seconds * MICROS_PER_SECOND).to_string(), shown);
        }
        assert_eq!(Timestamp(1_234_567).to_string(), "1970-01-01T00:00:01.234567Z");
    }

    #[test]
    fn a_time_comes_back_from_the_time_of_the_system() {
        for micros in [0, 1, -1, 1_709_208_000_250_000, -1_709_208_000_250_000] {
            assert_eq!(Timestamp::from(SystemTime::from(Timestamp(micros))), Timestamp(micros));
        }
    }

    #[test]
    fn a_moment_is_read_to_the_microsecond() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.5Z", 500_000),
            ("1970-01-02T00:00:01.000001Z", 86_401_000_001),
            ("1970-01-01T00:00:00.123456789Z", 123_456),
            ("2024-02-29T23:59:59.999999Z", 1_709_251_199_999_999),
            ("1969-12-31T23:59:59.000000Z", -1_000_000),
        ] {
            assert_eq!(Timestamp::from_rfc3339(text), Some(Timestamp(micros)), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_in_utc_is_refused() {
        for text in [
            "",
            "Z",
            "2025-01-01",
            "2025-01-01T00:00:00",
            "2025-01-01T00:00:00+01:00",
            "2025-01-01T00:00:00.Z",
            "2025-01-01T00:00:00.1234567890Z",
            "2025-01-01T00:00:00,5Z",
            "2025-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-01-01T24:00:00Z",
            "2025-01-01 00:00:00Z",
            "2025-01-01T00:00:+1Z",
            "2025-01-01T00:00:0é",
            "1735689600000000",
        ] {
            assert_eq!(Timestamp::from_rfc3339(text), None, "{text}");
        }
    }
}
