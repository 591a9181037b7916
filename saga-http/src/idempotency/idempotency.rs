//! Whose keys there are, and what is asked of a request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use saga_core::store::IdempotencyKeys;
use saga_core::{Runtime, Tenant};
use tokio::sync::Semaphore;

use super::claim_first::ClaimFirst;
use super::handler::IdempotentHandler;
use super::settings::Settings;
use super::ttl::{self, TtlTooLong};
use super::tx_handler::TxHandler;

/// Makes requests take effect once, by the header `Idempotency-Key` of
/// [draft-ietf-httpapi-idempotency-key-header](https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/).
///
/// A client chooses a key for each request and sends the same key with each retry. The first request runs, and its
/// response is kept; a retry gets the same response, byte for byte, with `Idempotent-Replayed: true`, and nothing runs.
///
/// [`handler`](Self::handler) gives a handler the store's transaction: what it writes, the key and the response are one
/// commit. [`claim_first`](Self::claim_first) is for handlers whose effect is elsewhere.
///
/// # What it guarantees
/// - With [`handler`](Self::handler), the effect, the key and the response commit together, and a principal's key has one
///   effect within its time to live, whatever process serves it.
/// - Replays are byte-identical, without `Set-Cookie`.
/// - Another request under the same key, or the key on another route, is answered with 422 and has no effect.
/// - Nothing is replayed to another principal.
/// - A key whose response was not kept can be used again.
///
/// # What is answered
/// | status | when |
/// |---|---|
/// | 400 | the header is malformed, sent twice, or missing where it is [`required`](Self::required) |
/// | 401 | the request has a key, and no principal |
/// | 409 | the same request is still running; with `Prefer: wait=10` it is waited for |
/// | 413 | the request is longer than [`request_bytes_max`](Self::request_bytes_max) |
/// | 422 | the key belongs to another request |
/// | 500 | the response is too long to be kept, or streamed; nothing was done |
/// | 503 | the store cannot be reached, or did not say whether it committed; a retry finds out |
///
/// Responses of 2xx, 3xx and 4xx are kept, except 401, 403, 404, 408, 409, 425 and 429. What a handler wrote is kept with
/// 2xx and 3xx only. Only POST and PATCH have keys; the header of other methods is ignored.
///
/// # Examples
/// ```
/// use axum::{Json, Router, routing::post};
/// use saga_core::memory::MemoryStore;
/// use saga_http::{Idempotency, Problem, Tx};
/// # use axum::{body::Body, http::{Request, StatusCode}};
/// # use tower::ServiceExt as _;
///
/// async fn pay(mut tx: Tx<'_, MemoryStore>, Json(cents): Json<i64>) -> Result<Json<i64>, Problem> {
///     let paid = tx.conn().add("paid", cents).map_err(|error| Problem::new(StatusCode::CONFLICT, error))?;
///     Ok(Json(paid))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// let idempotency = Idempotency::of_store(store.clone())
///     .principal(|parts| parts.headers.get("x-user")?.to_str().ok().map(str::to_owned))
///     .required();
/// let app: Router = Router::new().route("/payments", post(idempotency.handler(pay)));
///
/// for is_replayed in [false, true] {
///     let request = Request::post("/payments")
///         .header("x-user", "ada")
///         .header("idempotency-key", "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"")
///         .header("content-type", "application/json")
///         .body(Body::from("1200"))?;
///     let response = app.clone().oneshot(request).await?;
///     assert_eq!(response.status(), StatusCode::OK);
///     assert_eq!(response.headers().contains_key("idempotent-replayed"), is_replayed);
/// }
/// assert_eq!(store.read(|table| table.counter("paid")), 1200);
/// # Ok(())
/// # }
/// ```
pub struct Idempotency<S: IdempotencyKeys> {
    settings: Settings<S>,
}

/// An [`Idempotency`] that does not know yet whose keys there are.
#[must_use = "say whose keys there are, with `principal`"]
pub struct NewIdempotency<S: IdempotencyKeys> {
    store: Arc<S>,
    runtime: Option<Runtime<S>>,
}

impl<S: IdempotencyKeys> NewIdempotency<S> {
    /// Whose key it is: the name of the user or client that the application has authenticated. It is 1 to 255 bytes without
    /// control characters. A request with a key for which it answers `None` gets 401.
    pub fn principal(self, principal: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Idempotency<S> {
        Idempotency { settings: Settings::new(self.store, self.runtime, Arc::new(principal)) }
    }
}

#[expect(clippy::new_ret_no_self, reason = "whose keys there are is mandatory, and said next")]
impl<S: IdempotencyKeys> Idempotency<S> {
    /// Keeps keys in the store of a runtime. Handlers can start sagas and publish events.
    pub fn new(runtime: &Runtime<S>) -> NewIdempotency<S> {
        NewIdempotency { store: Arc::clone(runtime.store()), runtime: Some(runtime.clone()) }
    }

    /// Keeps keys in a store, without a runtime.
    pub fn of_store(store: S) -> NewIdempotency<S> {
        NewIdempotency { store: Arc::new(store), runtime: None }
    }

    /// For which tenant a request acts; without this it is the default one, as it is where the function answers `None`. The
    /// sagas that a handler starts belong to it too.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Fn(&Parts) -> Option<Tenant> + Send + Sync + 'static) -> Self {
        self.settings.tenant = Some(Arc::new(tenant));
        self
    }

    /// Refuses a POST or PATCH without a key. Without this, such a request runs once for each time it is sent.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.settings.required = true;
        self
    }

    /// Accepts a key only as the draft has it: in double quotes.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.settings.strict = true;
        self
    }

    /// Compares bodies of JSON by their content: white space, the order of members and escapes in strings make no other request.
    /// Numbers are compared as they are written, so `1.0` and `1.00` are two requests. A member name that is repeated counts each
    /// time, in its order. A body that is not valid JSON is compared byte by byte.
    #[must_use]
    pub fn canonical_json(mut self) -> Self {
        self.settings.canonical_json = true;
        self
    }

    /// How long a key is kept, by the store's clock: 24 hours, or for as long as the runtime keeps the keys of its sagas where
    /// that is shorter. After that the same key is a new request. A client must not retry for longer.
    ///
    /// # Errors
    /// When a saga of the runtime may be deleted earlier: a retry would get the `Location` of a saga that is gone.
    pub fn ttl(mut self, ttl: Duration) -> Result<Self, TtlTooLong> {
        self.settings.ttl = ttl::checked(self.settings.runtime.as_ref(), ttl)?;
        Ok(self)
    }

    /// How long a handler may take: 30 seconds. Then it is dropped, nothing is kept, and the answer is 503. Handlers on
    /// SQLite end at `SqliteOptions::write_time_max` if that is shorter.
    #[must_use]
    pub fn time_max(mut self, limit: Duration) -> Self {
        self.settings.time_max = limit;
        self
    }

    /// How long [`claim_first`](Self::claim_first) leases a key: one minute. Make it longer than the handler can take; a
    /// retry after it runs the handler again.
    #[must_use]
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.settings.lease_ttl = ttl;
        self
    }

    /// The longest request that is read: 1 MiB.
    #[must_use]
    pub fn request_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.request_bytes_max = bytes;
        self
    }

    /// The longest response that is kept: 256 KiB.
    #[must_use]
    pub fn response_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.response_bytes_max = bytes;
        self
    }

    /// How many clients may wait at the same time, with `Prefer: wait`, for a key in flight or for the outcome of a saga: 1,000.
    /// Another one is answered at once, as if it did not want to wait.
    #[must_use]
    pub fn waiting_max(mut self, clients: usize) -> Self {
        self.settings.places = Arc::new(Semaphore::new(clients.min(Semaphore::MAX_PERMITS)));
        self
    }

    /// The path of the sagas, for the `Location` of [`SagaAccepted`](super::SagaAccepted): `/sagas`.
    #[must_use]
    pub fn sagas_at(mut self, path: &str) -> Self {
        self.settings.sagas_at = path.trim_end_matches('/').into();
        self
    }

    /// A handler for axum's `post` and `patch` that runs in the store's transaction. It is an `async fn` that takes a
    /// [`Tx`](super::Tx), and up to four extractors. The last one may take the body.
    ///
    /// The extractors run first; what they reject takes no key. A store may run the transaction again from its start:
    /// then the extractors run again on the same request, so they must have no effect.
    ///
    /// On SQLite the writer thread runs the handler, and nothing else meanwhile, so it must not wait for anything slow.
    /// On PostgreSQL it must not `begin` a transaction on the connection; use `SAVEPOINT`. Behind PgBouncer its queries need
    /// `.persistent(false)`, as those of steps do.
    ///
    /// # Examples
    /// See [`Idempotency`].
    pub fn handler<F, Args>(&self, handler: F) -> IdempotentHandler<S, F, Args>
    where
        F: for<'a> TxHandler<'a, S, Args>,
    {
        IdempotentHandler::new(self.settings.clone(), handler)
    }

    /// A layer for handlers without the store's transaction: it leases the key, calls the handler, and keeps the response
    /// in a second commit. If the process ends in between, a retry after [`lease_ttl`](Self::lease_ttl) calls the handler
    /// again: it is called **at least once** under a key, like an external step. So pass the key on to what it calls;
    /// [`ClaimedKey`](super::ClaimedKey) is an extension of the request.
    ///
    /// Of a response that is too long, or streamed, status and headers are kept.
    ///
    /// # Examples
    /// ```
    /// use axum::{Extension, Router, routing::post};
    /// use saga_core::memory::MemoryStore;
    /// use saga_http::{ClaimedKey, Idempotency};
    ///
    /// async fn send_mail(Extension(key): Extension<ClaimedKey>) -> String {
    ///     // The provider of the mails gets the same key.
    ///     format!("sent under {}", key.key())
    /// }
    ///
    /// let idempotency = Idempotency::of_store(MemoryStore::new())
    ///     .principal(|parts| parts.headers.get("x-user")?.to_str().ok().map(str::to_owned))
    ///     .required();
    /// let app: Router = Router::new().route("/mails", post(send_mail).layer(idempotency.claim_first()));
    /// ```
    pub fn claim_first(&self) -> ClaimFirst<S> {
        ClaimFirst::new(self.settings.clone())
    }
}

impl<S: IdempotencyKeys> Clone for Idempotency<S> {
    fn clone(&self) -> Self {
        Self { settings: self.settings.clone() }
    }
}

impl<S: IdempotencyKeys> fmt::Debug for Idempotency<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (required, ttl) = (self.settings.required, self.settings.ttl);
        f.debug_struct("Idempotency").field("required", &required).field("ttl", &ttl).finish_non_exhaustive()
    }
}

impl<S: IdempotencyKeys> fmt::Debug for NewIdempotency<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewIdempotency").finish_non_exhaustive()
    }
}
