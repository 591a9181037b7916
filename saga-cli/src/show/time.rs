use std::time::Duration;

use saga_core::store::Timestamp;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A moment in UTC, such as `2024-02-29 12:00:00.250`.
pub(crate) fn utc(at: Timestamp) -> String {
    let seconds = at.0.div_euclid(MICROS_PER_SECOND);
    let (day, second) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
    let (year, month, day) = date(day);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let millis = at.0.rem_euclid(MICROS_PER_SECOND) / 1_000;
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millis:03}")
}

/// How long after the start, such as `+0.250 s`.
pub(crate) fn after(start: Timestamp, at: Timestamp) -> String {
    let micros = at.0 - start.0;
    let sign = if micros < 0 { '-' } else { '+' };
    format!("{sign}{:.3} s", Duration::from_micros(micros.unsigned_abs()).as_secs_f64())
}

/// Year, month and day of a day counted from 1970-01-01, by the Gregorian calendar.
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
    fn moments_are_shown_in_utc() {
        for (seconds, shown) in [
            (0, "1970-01-01 00:00:00.000"),
            (951_782_400, "2000-02-29 00:00:00.000"),
            (1_709_208_000, "2024-02-29 12:00:00.000"),
            (4_107_542_399, "2100-02-28 23:59:59.000"),
            (4_107_542_400, "2100-03-01 00:00:00.000"),
            (-1, "1969-12-31 23:59:59.000"),
        ] {
            assert_eq!(utc(Timestamp(seconds * MICROS_PER_SECOND)), shown);
        }
        assert_eq!(utc(Timestamp(1_234_567)), "1970-01-01 00:00:01.234");
    }

    #[test]
    fn a_moment_is_shown_by_how_long_after_the_start_it_was() {
        assert_eq!(after(Timestamp(5), Timestamp(250_005)), "+0.250 s");
        assert_eq!(after(Timestamp(2_000_000), Timestamp(1_000_000)), "-1.000 s");
    }
}
