//! The header `Idempotency-Key`: a structured field whose value is a string, after RFC 9651.

use http::{HeaderMap, HeaderName, StatusCode};
use saga_core::store::IDEMPOTENCY_KEY_BYTES_MAX;

use crate::Problem;

pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The key in the header `Idempotency-Key`, quoted or bare; `None` if there is no such header.
///
/// It is for services that keep the key with their own data, where it finds the effect of the first request. Otherwise
/// [`Idempotency`](super::Idempotency) keeps it.
///
/// # Errors
/// A problem with the status 400, when the header was sent twice or its value is no key.
///
/// # Examples
/// ```
/// use axum::http::HeaderMap;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("idempotency-key", "\"order-7\"".parse()?);
/// assert_eq!(saga_http::idempotency_key(&headers)?.as_deref(), Some("order-7"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    read(headers, false)
}

/// Reads the key; `None` if there is no such header.
pub(super) fn read(headers: &HeaderMap, strict: bool) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(refused("Idempotency-Key was sent twice; send it once"));
    }
    // Optional white space around a value does not belong to it.
    let value = value.to_str().ok().map(|text| text.trim_matches([' ', '\t']));
    let key = value.and_then(|value| match value.strip_prefix('"') {
        Some(quoted) => string(quoted),
        None if strict => None,
        None => Some(value.to_owned()).filter(|key| !key.contains(['"', ',', ';'])),
    });
    let is_key = |key: &String| {
        (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let wanted = if strict { "in double quotes" } else { "best in double quotes" };
    let detail = || {
        refused(&format!("Idempotency-Key is no key; send 1 to 255 visible ASCII characters, {wanted}, such as a UUID"))
    };
    key.filter(is_key).map(Some).ok_or_else(detail)
}

/// The problem of a request that needs a key and has none.
pub(super) fn missing() -> Problem {
    refused("this request needs an Idempotency-Key; make one, such as a UUID, and send the same one with each retry")
}

fn refused(detail: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}

/// The content of a string whose first quote was read, if only parameters follow, which say nothing here.
fn string(quoted: &str) -> Option<String> {
    let mut content = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => break,
            '\\' => content.push(characters.next().filter(|next| matches!(next, '"' | '\\'))?),
            character @ ' '..='~' => content.push(character),
            _ => return None,
        }
    }
    is_parameters(characters.as_str()).then_some(content)
}

/// Whether these are parameters: `;name`, or `;name=value`, and so on.
fn is_parameters(mut text: &str) -> bool {
    while let Some(rest) = text.strip_prefix(';') {
        let rest = rest.trim_start_matches(' ');
        let after = rest.trim_start_matches(|character: char| {
            character.is_ascii_lowercase() || character.is_ascii_digit() || "_-.*".contains(character)
        });
        if !rest.starts_with(|first: char| first.is_ascii_lowercase() || first == '*') {
            return false;
        }
        let after = after.strip_prefix('=').map_or(Some(after), behind_value);
        let Some(after) = after else { return false };
        text = after;
    }
    text.is_empty()
}

/// What follows the value of a parameter: a string, or characters that end at the next parameter.
fn behind_value(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.split_once('"').map(|(_, after)| after);
    }
    let after = text.trim_start_matches(|character: char| character.is_ascii_graphic() && !"\";,".contains(character));
    (after.len() < text.len()).then_some(after)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(values: &[&[u8]], strict: bool) -> Result<Option<String>, StatusCode> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IDEMPOTENCY_KEY, HeaderValue::from_bytes(value).unwrap());
        }
        read(&headers, strict).map_err(|problem| problem.status())
    }

    #[test]
    fn a_string_is_a_key_and_a_bare_text_too() {
        for (value, key) in [
            (&b"\"8e03978e-40d5\""[..], "8e03978e-40d5"),
            (b"8e03978e-40d5", "8e03978e-40d5"),
            (b"  \"a\"\t", "a"),
            (b"\"a\\\"b\\\\c\"", "a\"b\\c"),
            (b"\"a\";v=1; w;x=\"y\"", "a"),
            (b"order-7:charge-card", "order-7:charge-card"),
        ] {
            assert_eq!(check(&[value], false), Ok(Some(key.to_owned())));
        }
        assert_eq!(check(&[&[b'k'; 255]], false).map(|key| key.map(|key| key.len())), Ok(Some(255)));
        assert_eq!(check(&[], false), Ok(None));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let refused = Err(StatusCode::BAD_REQUEST);
        for value in [
            &b""[..],
            b"\"\"",
            b"\"a",
            b"\"a\"b",
            b"\"a\", \"b\"",
            b"a,b",
            b"a b",
            b"\"a b\"",
            b"a\"b",
            b"\"\\a\"",
            b"\xc3\xa4",
            b"\"\xc3\xa4\"",
            b"\"a\";",
            b"\"a\";V",
            b"\"a\";v=",
            b"\"a\";v=\"",
            &[b'k'; 256],
        ] {
            assert_eq!(check(&[value], false), refused, "{}", String::from_utf8_lossy(value));
        }
        assert_eq!(check(&[b"a", b"a"], false), refused);
        assert_eq!(check(&[b"a"], true), refused);
        assert_eq!(check(&[b"\"a\""], true), Ok(Some("a".to_owned())));
    }
}
