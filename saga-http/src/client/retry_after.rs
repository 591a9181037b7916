//! When a service wants to be asked again.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, header};

/// The longest pause that a service can ask for. A pause of years is a mistake, and would look like a saga that hangs.
const PAUSE_MAX: Duration = Duration::from_hours(24);

/// The header `Retry-After`: seconds, or a date, which is compared with the `Date` of the same answer.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let pause = if is_number {
        // Only a number that is far too large cannot be read.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        let at = httpdate::parse_http_date(text).ok()?;
        at.duration_since(date(headers)).unwrap_or_default()
    };
    Some(pause.min(PAUSE_MAX))
}

/// The time of the service, which may differ from ours.
#[expect(clippy::disallowed_methods, reason = "a service that sends no `Date` means the time of day")]
fn date(headers: &HeaderMap) -> SystemTime {
    let date = headers.get(header::DATE).and_then(|date| date.to_str().ok());
    date.and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or_else(SystemTime::now)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn seconds_and_dates_are_read() {
        let check = |text: &str, seconds: Option<u64>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::DATE, HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT"));
            headers.insert(header::RETRY_AFTER, HeaderValue::from_str(text).unwrap());
            assert_eq!(retry_after(&headers), seconds.map(Duration::from_secs), "{text}");
        };
        check("120", Some(120));
        check("0", Some(0));
        check("99999999999999999999999", Some(24 * 3_600));
        check("Sun, 06 Nov 1994 08:49:57 GMT", Some(20));
        check("Sun, 06 Nov 1994 08:00:00 GMT", Some(0));
        check("Sunday, 06-Nov-94 08:49:57 GMT", Some(20));
        check("Sun Nov  6 08:49:57 1994", Some(20));
        check("Sat, 06 Nov 2094 08:49:37 GMT", Some(24 * 3_600));
        for ignored in ["", "soon", "-1", "1.5"] {
            check(ignored, None);
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn without_a_date_the_time_of_day_counts() {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT"));
        assert_eq!(retry_after(&headers), Some(Duration::ZERO));
    }
}
