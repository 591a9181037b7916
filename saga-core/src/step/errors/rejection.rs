use std::fmt;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::text::limited;
use crate::log;

/// The longest details, in bytes of JSON.
const DETAILS_BYTES_MAX: usize = 64 * 1_024;

/// The recorded reason of a rejection: a message, and the user's own error if there was one.
///
/// The message is stored beside the details, so a log or a list does not need the error type. A message of more than 4 KiB
/// is cut, with a note that says so. Details of more than 64 KiB are not recorded.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    message: String,
    /// JSON as text: a unit struct is `null` in JSON, which an optional value could not tell from nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<String>,
}

impl Rejection {
    pub(crate) fn new(reason: impl fmt::Display) -> Self {
        Self { message: limited(reason.to_string()), details: None }
    }

    /// One that another service sent, within the limits of those that are made here.
    pub(crate) fn limited(self) -> Self {
        let details = self.details.filter(|details| details.len() <= DETAILS_BYTES_MAX);
        Self { message: limited(self.message), details }
    }

    pub(crate) fn with_details<E: fmt::Display + Serialize>(error: &E) -> Self {
        let details =
            serde_json::to_string(error).inspect_err(|error| log::warn!(%error, "rejection details not encoded")).ok();
        let bytes = details.as_ref().map_or(0, String::len);
        if bytes > DETAILS_BYTES_MAX {
            log::warn!(bytes, limit = DETAILS_BYTES_MAX, "rejection details too long");
        }
        Self { message: error.to_string(), details }.limited()
    }

    /// The reason in words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error that the step gave; `None` if it gave only a message, or an error of another type. It is read
    /// as JSON: `serde_json::Value` reads every error.
    pub fn details<E: DeserializeOwned>(&self) -> Option<E> {
        serde_json::from_str(self.details.as_deref()?).ok()
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The details are the user's data, so they are not printed.
impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = self.details.as_ref().map(String::len);
        f.debug_struct("Rejection").field("message", &self.message).field("details_bytes", &details).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct SoldOut;

    impl fmt::Display for SoldOut {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("sold out")
        }
    }

    struct Unwritable;

    impl Serialize for Unwritable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no form"))
        }
    }

    impl fmt::Display for Unwritable {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("unwritable")
        }
    }

    fn stored(rejection: &Rejection) -> Rejection {
        serde_json::from_str(&serde_json::to_string(rejection).unwrap()).unwrap()
    }

    #[test]
    fn the_error_comes_back_after_it_was_stored() {
        let rejection = stored(&Rejection::with_details(&SoldOut));
        assert_eq!(rejection.message(), "sold out");
        assert_eq!(rejection.details::<SoldOut>(), Some(SoldOut));
        assert_eq!(rejection.details::<u64>(), None);
    }

    #[test]
    fn an_error_without_fields_is_not_the_same_as_none() {
        assert_eq!(stored(&Rejection::with_details(&SoldOut)).details.as_deref(), Some("null"));
        let without = stored(&Rejection::new("sold out"));
        assert_eq!((without.details.as_deref(), without.details::<SoldOut>()), (None, None));
    }

    #[test]
    fn an_error_that_has_no_stored_form_keeps_its_message() {
        let rejection = Rejection::with_details(&Unwritable);
        assert_eq!((rejection.message(), rejection.details.as_deref()), ("unwritable", None));
    }

    #[test]
    fn what_is_too_long_is_cut_or_left_out() {
        let long = "\u{20ac}".repeat(100_000);
        for rejection in [Rejection::new(&long), Rejection::with_details(&long)] {
            assert!(rejection.message().len() <= 4_096, "{} bytes", rejection.message().len());
            assert!(rejection.message().ends_with("(cut here; it had 300000 bytes)"), "{rejection}");
            assert_eq!(rejection.details.as_deref(), None);
        }
    }

    #[test]
    fn the_details_are_not_printed() {
        let rejection = Rejection::with_details(&"4242");
        assert_eq!(
            format!("{:?}", Rejection { message: "no".to_owned(), ..rejection }),
            "Rejection { message: \"no\", details_bytes: Some(6) }"
        );
    }
}
