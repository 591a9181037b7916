//! Times of the store's clock.

use std::fmt;
use std::time::{Duration, SystemTime};

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

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
}
