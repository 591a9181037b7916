//! Moments as Debezium writes them for columns of the type `timestamptz`.

use saga_core::store::Timestamp;

/// How long the part up to the seconds is.
const SECONDS_LENGTH: usize = "2026-11-27T14:45:23".len();
const MICROS_PER_SECOND: i64 = 1_000_000;
/// The longest fraction, in digits.
const FRACTION_LENGTH_MAX: usize = 9;

/// Reads a moment in UTC, such as `2026-11-27T14:45:23.832557Z`, to the microsecond. Nothing where it is none.
pub(crate) fn parse_zoned_timestamp(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.strip_suffix('Z')?.split_at_checked(SECONDS_LENGTH)?;
    let seconds = seconds_since_1970(whole)?;
    let at = Timestamp(seconds.checked_mul(MICROS_PER_SECOND)?.checked_add(micros(fraction)?)?);
    // A day that no month has, or a 25th hour, is written as another one.
    at.to_string().starts_with(whole).then_some(at)
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

/// After Howard Hinnant's `days_from_civil`: <https://howardhinnant.github.io/date_algorithms.html>.
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
    fn a_moment_is_read_to_the_microsecond() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.5Z", 500_000),
            ("1970-01-02T00:00:01.000001Z", 86_401_000_001),
            ("1970-01-01T00:00:00.123456789Z", 123_456),
            ("2024-02-29T23:59:59.999999Z", 1_709_251_199_999_999),
            ("1969-12-31T23:59:59.000000Z", -1_000_000),
        ] {
            assert_eq!(parse_zoned_timestamp(text), Some(Timestamp(micros)), "{text}");
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
            assert_eq!(parse_zoned_timestamp(text), None, "{text}");
        }
    }
}
