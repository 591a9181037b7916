//! A request as it was read.

use std::error::Error as _;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use http::request::Parts;
use http::{Method, StatusCode};
use http_body_util::LengthLimitError;
use saga_core::Tenant;
use saga_core::store::{IdempotencyKey, IdempotencyKeys, InvalidIdempotencyKey, KeyedRequest};

use super::settings::Settings;
use super::{fingerprint, key};
use crate::Problem;
use crate::status::preferred_wait;

/// The longest that a client is made to wait. Proxies close a connection on which nothing happens for about as long.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// A request, with its whole body.
pub(super) struct Incoming {
    parts: Parts,
    body: Bytes,
    /// Set where the request has a key.
    pub(super) keyed: Option<KeyedRequest>,
    pub(super) tenant: Tenant,
    /// How long the client waits for a response that is not ready.
    pub(super) wait: Option<Duration>,
}

impl Incoming {
    /// Reads a request.
    pub(super) async fn read<S: IdempotencyKeys>(request: Request, settings: &Settings<S>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let (tenant, key) = settings.scope_of(&parts)?;
        Self::read_rest(parts, body, (tenant, key), settings).await
    }

    /// Reads the body of a request whose tenant and key are known.
    pub(super) async fn read_rest<S: IdempotencyKeys>(
        parts: Parts,
        body: Body,
        (tenant, key): (Tenant, Option<IdempotencyKey>),
        settings: &Settings<S>,
    ) -> Result<Self, Problem> {
        let body = read_body(body, settings.request_bytes_max).await?;
        let keyed = key.map(|key| {
            let fingerprint = fingerprint::of(&parts, &body, settings.canonical_json);
            KeyedRequest { key, fingerprint, ttl: settings.ttl }
        });
        let wait = preferred_wait(&parts.headers).map(|wait| wait.min(WAIT_MAX));
        Ok(Self { parts, body, keyed, tenant, wait })
    }

    /// The request again.
    pub(super) fn request(&self) -> Request {
        Request::from_parts(self.parts.clone(), Body::from(self.body.clone()))
    }
}

impl<S: IdempotencyKeys> Settings<S> {
    /// The tenant of a request, and its key, if it has one.
    pub(super) fn scope_of(&self, parts: &Parts) -> Result<(Tenant, Option<IdempotencyKey>), Problem> {
        let tenant = self.tenant.as_ref().and_then(|tenant| tenant(parts)).unwrap_or_default();
        let key = self.key_of(parts, &tenant)?;
        Ok((tenant, key))
    }

    fn key_of(&self, parts: &Parts, tenant: &Tenant) -> Result<Option<IdempotencyKey>, Problem> {
        if parts.method != Method::POST && parts.method != Method::PATCH {
            return Ok(None);
        }
        let Some(key) = key::read(&parts.headers, self.strict)? else {
            return if self.required { Err(key::missing()) } else { Ok(None) };
        };
        let unauthorized =
            || Problem::new(StatusCode::UNAUTHORIZED, "a request with a key needs a known sender; log in first");
        let principal = (self.principal)(parts).ok_or_else(unauthorized)?;
        IdempotencyKey::new(tenant.clone(), &principal, &key).map(Some).map_err(|error| match error {
            InvalidIdempotencyKey::Principal => {
                tracing::error!(%error, "the principal of a request cannot be kept; name it otherwise in `principal`");
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the server cannot keep keys of this sender")
            }
            error => Problem::new(StatusCode::BAD_REQUEST, error),
        })
    }
}

async fn read_body(body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    to_bytes(body, bytes_max).await.map_err(|error| {
        if error.source().is_some_and(<dyn std::error::Error>::is::<LengthLimitError>) {
            let detail = format!("the request is longer than {bytes_max} bytes; send less");
            return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail);
        }
        Problem::new(StatusCode::BAD_REQUEST, "the request ended before its body was complete; send it again")
    })
}
