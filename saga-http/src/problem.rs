//! Errors as RFC 9457 has them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

/// An error as `application/problem+json`, after RFC 9457.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    title: &'static str,
    #[serde(serialize_with = "as_number")]
    status: StatusCode,
    detail: String,
    #[serde(flatten)]
    extensions: BTreeMap<&'static str, String>,
    #[serde(skip)]
    retry_after: Option<Duration>,
}

impl Problem {
    /// A problem with this status and this sentence, which says what happened, why, and what to do.
    pub fn new(status: StatusCode, detail: impl fmt::Display) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { title, status, detail: detail.to_string(), extensions: BTreeMap::new(), retry_after: None }
    }

    /// Says when to try again, in the header `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Adds a member of the application, by which programs tell problems of one status apart.
    #[must_use]
    pub fn extension(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.extensions.insert(name, value.into());
        self
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references to fields")]
fn as_number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.detail)
    }
}

impl std::error::Error for Problem {}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if let Some(delay) = self.retry_after {
            let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
