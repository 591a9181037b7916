//! Requests, and what is answered.

use axum::Router;
use axum::body::{Body, to_bytes};
use http::request::Builder;
use http::{HeaderMap, Request, StatusCode, header};
use tower::ServiceExt as _;

/// A response that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Whether it is a replay.
    pub(crate) fn is_replayed(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }

    /// Without what says that it is a replay.
    pub(crate) fn as_first(mut self) -> Self {
        self.headers.remove("idempotent-replayed");
        self
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A payment of Ada under this key.
pub(crate) fn request(path: &str, key: &str) -> Builder {
    Request::post(path)
        .header("x-user", "ada")
        .header("idempotency-key", key)
        .header(header::CONTENT_TYPE, "application/json")
}

/// Sends a request.
pub(crate) async fn send(app: &Router, request: Builder, body: impl Into<Body>) -> Answer {
    let response = app.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
    Answer { status: parts.status, headers: parts.headers, body }
}
