use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

/// A value that the runtime can store: the input or the output of a step.
///
/// It holds for every type that serde can write and read, that owns its data, and that may be sent
/// between threads.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored by the saga runtime",
    label = "cannot be stored",
    note = "this type and every type inside it must derive `serde::Serialize` and `serde::Deserialize`, own its data, and be `Send + Sync`"
)]
pub trait Payload: Serialize + DeserializeOwned + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Payload for T {}

/// How a value of type `T` is stored, and read again.
///
/// The bound that `T` is a [`Payload`] stands only at [`codec`], so a type that cannot be stored is
/// one error and not one for each use.
pub struct Codec<T> {
    encode: fn(&T) -> Result<Vec<u8>, CodecError>,
    decode: fn(&[u8]) -> Result<T, CodecError>,
}

impl<T> Codec<T> {
    /// The stored form of `value`.
    ///
    /// # Errors
    ///
    /// The value's own `Serialize` failed, or it has no JSON form, such as a map whose keys are no strings.
    pub fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        (self.encode)(value)
    }

    /// The value that `bytes` hold.
    ///
    /// # Errors
    ///
    /// The bytes were written by something else, or by a version of the type that differs too much.
    pub fn decode(&self, bytes: &[u8]) -> Result<T, CodecError> {
        (self.decode)(bytes)
    }
}

impl<T> Clone for Codec<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Codec<T> {}

impl<T> fmt::Debug for Codec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Codec<{}>", std::any::type_name::<T>())
    }
}

/// The codec of a type that can be stored: JSON.
pub const fn codec<T: Payload>() -> Codec<T> {
    Codec {
        encode: |value| serde_json::to_vec(value).map_err(|error| CodecError::writing::<T>(&error)),
        decode: |bytes| serde_json::from_slice(bytes).map_err(|error| CodecError::reading::<T>(&error)),
    }
}

/// Stands where a step has a mistake that keeps the program from compiling, so that no second one is reported.
#[doc(hidden)]
pub const fn no_codec<T>() -> Codec<T> {
    Codec {
        encode: |_| unreachable!("a program with this codec does not compile"),
        decode: |_| unreachable!("a program with this codec does not compile"),
    }
}

/// A value could not be written in its stored form, or not be read from it.
///
/// It names the type and the place, never what was stored: payloads are not printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{type_name}`: {reason}")]
pub struct CodecError {
    type_name: &'static str,
    reason: String,
}

impl CodecError {
    fn writing<T>(error: &serde_json::Error) -> Self {
        Self { type_name: std::any::type_name::<T>(), reason: error.to_string() }
    }

    pub(super) fn reading<T>(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        // Of the messages about data, those about fields name a field of the type; the others quote the value.
        let quotes_nothing =
            !error.is_data() || text.starts_with("missing field") || text.starts_with("duplicate field");
        let reason = if quotes_nothing {
            text
        } else {
            let found = found_and_expected(&text).unwrap_or_default();
            format!("a value of another type or form at line {} column {}{found}", error.line(), error.column())
        };
        Self { type_name: std::any::type_name::<T>(), reason }
    }
}

/// What was found and what was expected, of a message such as ``invalid type: string "4242", expected u64 at line 1``, where the
/// kind of the value is one of JSON and what was expected is the name of a type. A type with its own `Deserialize` may say
/// anything, also the value, so nothing else of the message is taken.
fn found_and_expected(message: &str) -> Option<String> {
    const FOUND: [(&str, &str); 7] = [
        ("null", "null"),
        ("boolean", "a boolean"),
        ("integer", "an integer"),
        ("floating point", "a number with a fraction"),
        ("string", "a string"),
        ("sequence", "an array"),
        ("map", "an object"),
    ];
    const EXPECTED: [&str; 17] = [
        "a boolean",
        "a string",
        "a sequence",
        "a map",
        "unit",
        "i8",
        "i16",
        "i32",
        "i64",
        "i128",
        "u8",
        "u16",
        "u32",
        "u64",
        "u128",
        "f32",
        "f64",
    ];
    let found = message.strip_prefix("invalid type: ")?;
    let (_, found) = FOUND.iter().find(|(kind, _)| found.starts_with(kind))?;
    let (_, expected) = message.rsplit_once(", expected ")?;
    let (expected, _) = expected.split_once(" at line ")?;
    let is_struct = expected.strip_prefix("struct ").is_some_and(is_name);
    let is_known = is_struct || EXPECTED.contains(&expected);
    is_known.then(|| format!(": {found}, where {expected} is expected"))
}

fn is_name(text: &str) -> bool {
    text.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
    struct Card {
        number: u64,
    }

    fn reading(stored: &str) -> String {
        codec::<Card>().decode(stored.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = codec::<Card>().encode(&Card { number: u64::MAX }).unwrap();
        assert_eq!(codec::<Card>().decode(&bytes).unwrap(), Card { number: u64::MAX });
    }

    proptest! {
        #[test]
        fn a_number_with_a_fraction_comes_back_to_the_last_bit(bits in any::<u64>()) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let read = codec::<f64>().decode(&codec::<f64>().encode(&number).unwrap()).unwrap();
            prop_assert_eq!(read.to_bits(), number.to_bits());
        }
    }

    #[test]
    fn an_error_names_the_type_and_the_place_and_no_value() {
        let type_name = std::any::type_name::<Card>();
        assert_eq!(reading("{}"), format!("`{type_name}`: missing field `number` at line 1 column 2"));
        assert_eq!(reading("{\"number\""), format!("`{type_name}`: EOF while parsing an object at line 1 column 9"));
        for stored in ["{\"number\":\"4242\"}", "{\"number\":-4242}", "[4242.5]", "\"4242\""] {
            let error = reading(stored);
            assert!(error.contains("a value of another type or form at line 1 column"), "{error}");
            assert!(!error.contains("4242"), "{error}");
        }
    }

    #[test]
    fn an_error_says_what_was_found_and_what_was_expected() {
        let cases = [
            ("{\"number\":\"4242\"}", ": a string, where u64 is expected"),
            ("{\"number\":-4242}", ""),
            ("{\"number\":42.42}", ": a number with a fraction, where u64 is expected"),
            ("{\"number\":null}", ": null, where u64 is expected"),
            ("{\"number\":[4242]}", ": an array, where u64 is expected"),
            ("\"4242\"", ": a string, where struct Card is expected"),
        ];
        for (stored, expected) in cases {
            let error = reading(stored);
            let (_, said) = error.split_once(" column ").unwrap();
            assert_eq!(said.trim_start_matches(char::is_numeric), expected, "{stored}");
        }
    }

    #[test]
    fn what_a_type_says_of_a_value_is_left_out() {
        #[derive(Debug, Serialize)]
        struct Secret;
        impl<'de> serde::Deserialize<'de> for Secret {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Err(serde::de::Error::custom(text))
            }
        }
        let said =
            ["invalid type: string, expected s3cret", "invalid type: s3cret, expected u64", "s3cret, expected u64"];
        for said in said {
            let stored = serde_json::to_vec(said).unwrap();
            let error = codec::<Secret>().decode(&stored).unwrap_err().to_string();
            assert!(error.contains("a value of another type or form") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn what_has_no_stored_form_is_an_error() {
        let error = codec::<BTreeMap<(u8, u8), u8>>().encode(&BTreeMap::from([((1, 2), 3)])).unwrap_err();
        assert!(error.to_string().ends_with("key must be a string"), "{error}");
    }
}
