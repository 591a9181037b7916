//! Durations as they are written in options: `"100ms"`, `"10s"`, `"5m"`, `"2h"`.

use std::time::Duration;

/// Reads a whole number with a unit.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis_of_unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(millis_of_unit).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_with_a_unit_is_a_duration() {
        let check = |text, millis: Option<u64>| assert_eq!(parse(text), millis.map(Duration::from_millis), "{text}");
        check("0ms", Some(0));
        check("100ms", Some(100));
        check("10s", Some(10_000));
        check("5m", Some(300_000));
        check("2h", Some(7_200_000));
        check("", None);
        check("10", None);
        check("s", None);
        check("1.5s", None);
        check("10 s", None);
        check("-1s", None);
        check("10sec", None);
        check("18446744073709551615ms", Some(u64::MAX));
        check("18446744073709551615h", None);
        check("18446744073709551616ms", None);
    }
}
