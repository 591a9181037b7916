use std::time::Duration;

use saga_core::store::Timestamp;

/// A moment in UTC, such as `2024-02-29 12:00:00.250`.
pub(crate) fn utc(at: Timestamp) -> String {
    // As RFC 3339 has it, with a space and milliseconds.
    let text = at.to_string();
    let (date, time) = text.split_once('T').unwrap_or((&text, ""));
    format!("{date} {}", time.get(..12).unwrap_or(time))
}

/// How long after the start, such as `+0.250 s`.
pub(crate) fn after(start: Timestamp, at: Timestamp) -> String {
    let micros = at.0 - start.0;
    let sign = if micros < 0 { '-' } else { '+' };
    format!("{sign}{:.3} s", Duration::from_micros(micros.unsigned_abs()).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_in_utc() {
        assert_eq!(utc(Timestamp(1_709_208_000_250_000)), "2024-02-29 12:00:00.250");
        assert_eq!(utc(Timestamp(1_234_567)), "1970-01-01 00:00:01.234");
    }

    #[test]
    fn a_moment_is_shown_by_how_long_after_the_start_it_was() {
        assert_eq!(after(Timestamp(5), Timestamp(250_005)), "+0.250 s");
        assert_eq!(after(Timestamp(2_000_000), Timestamp(1_000_000)), "-1.000 s");
    }
}
