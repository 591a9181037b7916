//! Request hashes: is it the same payload under the same key?

use std::fmt::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The rule by which the hashed text is made; it stands in front of every hash.
const RULE: u8 = 1;

/// The hash of an encoded payload: the version of the rule, then SHA-256 over the payload in canonical order.
///
/// Canonical means that the members of objects are sorted by their names and that there is no white space. Numbers stay as
/// they were written; the order in arrays counts.
pub(crate) fn request_hash(payload: &[u8]) -> Vec<u8> {
    let mut hash = vec![RULE];
    match serde_json::from_slice::<Value>(payload) {
        Ok(value) => {
            let mut text = String::with_capacity(payload.len());
            write_canonical(&value, &mut text);
            hash.extend(Sha256::digest(text));
        }
        // Not every codec writes JSON that a value can hold, such as an integer of 128 bits: those bytes count as they are.
        Err(_) => hash.extend(Sha256::digest(payload)),
    }
    hash
}

/// The first path at which two payloads differ, such as `items[2].quantity`.
pub(crate) fn first_difference(known: &[u8], given: &[u8]) -> String {
    let (Ok(known), Ok(given)) = (serde_json::from_slice(known), serde_json::from_slice(given)) else {
        return "the whole payload".to_owned();
    };
    let mut path = String::new();
    if differs_at(&known, &given, &mut path) && !path.is_empty() { path } else { "the whole payload".to_owned() }
}

fn differs_at(known: &Value, given: &Value, path: &mut String) -> bool {
    let length = path.len();
    match (known, given) {
        (Value::Object(known), Value::Object(given)) => {
            let mut names: Vec<&String> = known.keys().chain(given.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                if length > 0 {
                    path.push('.');
                }
                path.push_str(name);
                let differs = match (known.get(name), given.get(name)) {
                    (Some(known), Some(given)) => differs_at(known, given, path),
                    _ => true,
                };
                if differs {
                    return true;
                }
                path.truncate(length);
            }
            false
        }
        (Value::Array(known), Value::Array(given)) => {
            for index in 0..known.len().max(given.len()) {
                // A string takes every write.
                let _ = write!(path, "[{index}]");
                let differs = match (known.get(index), given.get(index)) {
                    (Some(known), Some(given)) => differs_at(known, given, path),
                    _ => true,
                };
                if differs {
                    return true;
                }
                path.truncate(length);
            }
            false
        }
        _ => known != given,
    }
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                let _ = write!(text, "{}:", Value::String(name.clone()));
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(value, text);
            }
            text.push(']');
        }
        plain => {
            let _ = write!(text, "{plain}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_members_does_not_count_and_everything_else_does() {
        let same = request_hash(br#"{"a":1,"b":[1,{"c":2,"d":3}]}"#);
        assert_eq!(same, request_hash(br#"{ "b": [1, {"d":3, "c":2}], "a": 1 }"#));
        for other in [r#"{"a":1.0,"b":[1,{"c":2,"d":3}]}"#, r#"{"a":1,"b":[{"c":2,"d":3},1]}"#, r#"{"a":1}"#] {
            assert_ne!(same, request_hash(other.as_bytes()), "{other}");
        }
        assert_ne!(request_hash(b"18446744073709551615"), request_hash(b"18446744073709551614"));
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        let check = |known: &str, given: &str, path: &str| {
            assert_eq!(first_difference(known.as_bytes(), given.as_bytes()), path);
        };
        check(r#"{"items":[{"n":1},{"n":2}]}"#, r#"{"items":[{"n":1},{"n":3}]}"#, "items[1].n");
        check(r#"{"items":[1]}"#, r#"{"items":[1,2]}"#, "items[1]");
        check(r#"{"a":1}"#, r#"{"a":1,"b":2}"#, "b");
        check("1", "2", "the whole payload");
    }
}
