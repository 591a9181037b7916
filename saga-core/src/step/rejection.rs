use std::fmt;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Why a step rejected the saga, as it is recorded: a message, and the user's own error if there was one.
///
/// The message stands beside the details, so a log or a list never needs the type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    message: String,
    /// JSON as text: a unit struct is `null` in JSON, which an optional value could not tell from nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<String>,
}

impl Rejection {
    pub(crate) fn new(reason: impl fmt::Display) -> Self {
        Self { message: reason.to_string(), details: None }
    }

    pub(crate) fn with_details<E: fmt::Display + Serialize>(error: &E) -> Self {
        let details = serde_json::to_string(error)
            .inspect_err(|cause| tracing::warn!(%cause, "a rejection is recorded without its details"))
            .ok();
        Self { message: error.to_string(), details }
    }

    /// The reason in words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error that the step rejected with; `None` if it gave only a message, or another type.
    pub fn details<E: DeserializeOwned>(&self) -> Option<E> {
        serde_json::from_str(self.details.as_deref()?).ok()
    }

    /// The error that the step rejected with, as JSON.
    pub fn details_json(&self) -> Option<&str> {
        self.details.as_deref()
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
