//! The response to a request that started a saga.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use super::answer::SOON;

/// 202 Accepted: a saga was started, and its status is found at the `Location`.
///
/// [`Tx::start`](super::Tx::start) makes it. The client asks again after the seconds of `Retry-After`, or sends
/// `Prefer: wait=30` with its request to get the outcome itself if the saga ends in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SagaAccepted {
    key: String,
    location: String,
}

/// The saga that a response tells of, as an extension of the response.
#[derive(Debug, Clone)]
pub(super) struct AcceptedSaga(pub(super) String);

impl SagaAccepted {
    pub(super) fn new(key: &str, sagas_at: &str) -> Self {
        Self { key: key.to_owned(), location: format!("{sagas_at}/{}", escaped(key)) }
    }

    /// The key of the saga.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Where its status is found.
    pub fn location(&self) -> &str {
        &self.location
    }
}

impl IntoResponse for SagaAccepted {
    fn into_response(self) -> Response {
        let mut response = (StatusCode::ACCEPTED, Json(&self)).into_response();
        let headers = response.headers_mut();
        // An escaped path is a legal value.
        headers.extend(HeaderValue::try_from(&self.location).ok().map(|location| (header::LOCATION, location)));
        headers.insert(header::RETRY_AFTER, HeaderValue::from(SOON.as_secs()));
        response.extensions_mut().insert(AcceptedSaga(self.key));
        response
    }
}

/// A key as a part of a path, after RFC 3986.
fn escaped(key: &str) -> String {
    let escape = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' | b':' | b'@' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    key.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_path_whatever_the_key() {
        let at = |key| SagaAccepted::new(key, "/sagas").location;
        assert_eq!(at("A-1001"), "/sagas/A-1001");
        assert_eq!(at("a/b?c#d%e"), "/sagas/a%2Fb%3Fc%23d%25e");
        assert_eq!(at("order-7:charge"), "/sagas/order-7:charge");
        let response = SagaAccepted::new("A-1001", "/sagas").into_response();
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        assert_eq!(response.headers()[header::LOCATION], "/sagas/A-1001");
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    }
}
