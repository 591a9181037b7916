//! The application: its handlers do as the request says.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use http::request::Parts;
use http::{StatusCode, header};
use http_body::{Frame, SizeHint};
use saga_core::store::IdempotencyKeys;
use saga_core::{Runtime, Saga, StepError, saga_step};
use saga_http::{ClaimedKey, Idempotency, Tx};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::{Answer, Ledger, request, send};

/// What a request asks its handler to do.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "a test sets the one that it is about")]
pub(crate) struct Order {
    pub(crate) name: String,
    /// The status of the response; 0 is 200.
    pub(crate) status: u16,
    /// How long the response is beside the rest.
    pub(crate) bytes: usize,
    pub(crate) streams: bool,
    /// The response ends before the length that it said.
    pub(crate) breaks_off: bool,
    pub(crate) panics: bool,
    /// A statement fails, and the handler goes on.
    pub(crate) fails: bool,
    /// It stays until the gate opens.
    pub(crate) stays: bool,
    /// The key of a saga to start.
    pub(crate) saga: Option<String>,
}

impl Order {
    pub(crate) fn of(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap()
    }
}

/// Where a handler stays.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    pub(crate) entered: Notify,
    pub(crate) opens: Notify,
    /// How often handlers were called.
    pub(crate) calls: AtomicU32,
}

/// What the handlers share.
pub(crate) struct Shop<S: IdempotencyKeys> {
    pub(crate) gate: Arc<Gate>,
    greeting: Arc<Saga<S, String>>,
}

impl<S: IdempotencyKeys> Shop<S> {
    /// The same for handlers on another store, whose sagas nothing runs.
    pub(crate) fn on<T: IdempotencyKeys>(&self) -> Shop<T> {
        let greeting = Saga::named("greeting").input::<String>().step::<greet>().build().unwrap();
        Shop { gate: Arc::clone(&self.gate), greeting: Arc::new(greeting) }
    }
}

impl<S: IdempotencyKeys> Clone for Shop<S> {
    fn clone(&self) -> Self {
        Self { gate: Arc::clone(&self.gate), greeting: Arc::clone(&self.greeting) }
    }
}

/// An application on a store of its own.
pub(crate) struct Application<S: Ledger> {
    pub(crate) store: S,
    pub(crate) runtime: Runtime<S>,
    pub(crate) shop: Shop<S>,
    pub(crate) app: Router,
    pub(crate) place: S::Place,
}

/// A step that refuses the name `nobody`.
#[saga_step]
async fn greet(name: String) -> Result<String, StepError> {
    if name == "nobody" {
        return Err(StepError::reject("there is nobody to greet"));
    }
    Ok(format!("hello {name}"))
}

impl<S: Ledger> Application<S> {
    pub(crate) async fn start() -> Self {
        let (store, place) = S::fresh().await;
        Self::on(store, place).await
    }

    pub(crate) async fn on(store: S, place: S::Place) -> Self {
        let greeting = Saga::named("greeting").input::<String>().step::<greet>().build().unwrap();
        let runtime = Runtime::builder(store.clone()).saga(&greeting).start().await.unwrap();
        let shop = Shop { gate: Arc::default(), greeting: Arc::new(greeting) };
        let app = routes(&Idempotency::new(&runtime).principal(user).required(), &shop);
        Self { store, runtime, shop, app, place }
    }

    /// The same application with other settings.
    pub(crate) fn with(&self, change: impl FnOnce(Idempotency<S>) -> Idempotency<S>) -> Router {
        routes(&change(Idempotency::new(&self.runtime).principal(user)), &self.shop)
    }

    /// Sends a payment of Ada.
    pub(crate) async fn pay(&self, key: &str, order: &Order) -> Answer {
        send(&self.app, request("/payments", key), order.text()).await
    }

    pub(crate) fn calls(&self) -> u32 {
        self.shop.gate.calls.load(Ordering::SeqCst)
    }
}

/// The user, as an authentication in front would say it.
pub(crate) fn user(parts: &Parts) -> Option<String> {
    parts.headers.get("x-user")?.to_str().ok().map(str::to_owned)
}

pub(crate) fn routes<S: Ledger>(idempotency: &Idempotency<S>, shop: &Shop<S>) -> Router {
    let handler = idempotency.handler(pay::<S>);
    Router::new()
        .route("/payments", post(handler.clone()).patch(handler.clone()).put(handler.clone()))
        .route("/refunds", post(handler))
        .route("/payments/count", get(idempotency.handler(count::<S>)))
        .route("/mails", post(mail).layer(idempotency.claim_first()))
        .layer(Extension(Arc::clone(&shop.gate)))
        .with_state(shop.clone())
}

/// A handler without extractors.
async fn count<S: Ledger>(mut tx: Tx<'_, S>) -> String {
    S::pay(tx.conn(), "counted").await.unwrap().to_string()
}

async fn pay<S: Ledger>(mut tx: Tx<'_, S>, State(shop): State<Shop<S>>, Json(order): Json<Order>) -> Response {
    shop.gate.calls.fetch_add(1, Ordering::SeqCst);
    let payments = match S::pay(tx.conn(), &order.name).await {
        Ok(payments) => payments,
        Err(error) => return (StatusCode::SERVICE_UNAVAILABLE, error).into_response(),
    };
    if order.fails {
        S::fail(tx.conn()).await;
    }
    if order.stays {
        stay(&shop.gate).await;
    }
    assert!(!order.panics, "the handler was told to panic");
    if let Some(key) = &order.saga {
        let accepted = tx.start(&shop.greeting, key, order.name.clone()).await;
        if order.status == 0 {
            return accepted.into_response();
        }
    }
    respond(&order, &payments.to_string())
}

async fn mail(Extension(gate): Extension<Arc<Gate>>, Extension(key): Extension<ClaimedKey>, body: String) -> Response {
    gate.calls.fetch_add(1, Ordering::SeqCst);
    let order: Order = serde_json::from_str(&body).unwrap();
    if order.stays {
        stay(&gate).await;
    }
    assert!(!order.panics, "the handler was told to panic");
    assert!(key.epoch() > 0);
    respond(&order, key.key().as_str())
}

async fn stay(gate: &Gate) {
    gate.entered.notify_one();
    gate.opens.notified().await;
}

fn respond(order: &Order, text: &str) -> Response {
    let status = StatusCode::from_u16(if order.status == 0 { 200 } else { order.status }).unwrap();
    let text = format!("{text} of {}{}", order.name, "x".repeat(order.bytes));
    let length = text.len() + 1;
    let body = if order.breaks_off {
        Body::new(BrokenBody(Some(text.into())))
    } else if order.streams {
        Body::from_stream(futures_util::stream::iter([Ok::<_, std::convert::Infallible>(text)]))
    } else {
        Body::from(text)
    };
    let headers = [(header::SET_COOKIE, "session=1"), (header::ETAG, "\"7\""), (header::CONTENT_TYPE, "text/plain")];
    let mut response = (status, headers, body).into_response();
    if order.breaks_off {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    response
}

/// A body that says that one byte more comes, and fails instead.
struct BrokenBody(Option<Bytes>);

impl HttpBody for BrokenBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Poll::Ready(Some(
            self.0.take().map_or_else(|| Err(std::io::Error::other("it broke")), |text| Ok(Frame::data(text))),
        ))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, Bytes::len) as u64 + 1)
    }
}
