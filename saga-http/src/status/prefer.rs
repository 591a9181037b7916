//! How long a client waits for an answer: the header `Prefer` of RFC 7240.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// The preference `wait`. As RFC 7240 asks, what cannot be read is ignored, and the first of several counts.
pub(crate) fn wait(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).find_map(read)
}

fn read(preference: &str) -> Option<Duration> {
    let preference = preference.split(';').next().unwrap_or_default();
    let (name, value) = preference.split_once('=')?;
    let value = value.trim().trim_matches('"');
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if !name.trim().eq_ignore_ascii_case("wait") || !is_number {
        return None;
    }
    // Only a number that is far too large cannot be read.
    Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_first_wait_counts_and_the_rest_is_ignored() {
        let check = |lines: &[&str], seconds: Option<u64>| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(PREFER, HeaderValue::from_str(line).unwrap());
            }
            assert_eq!(wait(&headers), seconds.map(Duration::from_secs), "{lines:?}");
        };
        check(&[], None);
        check(&["wait=10"], Some(10));
        check(&["respond-async, Wait = 10; x=y"], Some(10));
        check(&["respond-async", "wait=\"7\", wait=8"], Some(7));
        check(&["wait=99999999999999999999999"], Some(u64::MAX));
        for ignored in ["wait", "wait=", "wait=-1", "wait=1.5", "wait=ten", "waits=3"] {
            check(&[ignored], None);
        }
    }
}
