//! Orders that wait at a gate, and clients that look at them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use saga_core::engine::{SagaAdmin, SagaSummary};
use saga_core::store::Store;
use saga_core::{Runtime, Saga, SagaHandle, State, StepError, saga_compensation, saga_step};
use saga_http::{StatusRoutes, status_routes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

use crate::status::stores::Fresh;

/// Who asks: the layer of an application that logs users in would put it into the request.
#[derive(Debug, Clone)]
pub(crate) struct User(pub(crate) &'static str);

/// Each step passes once the test lets it.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn open(&self, steps: usize) {
        self.0.add_permits(steps);
    }

    /// Takes back what was opened and not used.
    pub(crate) fn shut(&self) {
        self.0.forget_permits(Semaphore::MAX_PERMITS);
    }

    async fn pass(&self) -> Result<(), StepError> {
        self.0.acquire().await?.forget();
        Ok(())
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct OutOfStock {
    left: u32,
}

impl std::fmt::Display for OutOfStock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "only {} left", self.left)
    }
}

#[saga_step(compensate = give_back)]
async fn reserve(_pieces: u32, State(gate): State<Gate>) -> Result<(), StepError> {
    gate.pass().await
}

#[saga_compensation]
async fn give_back(_pieces: u32, State(gate): State<Gate>) -> Result<(), StepError> {
    gate.pass().await
}

#[saga_step(no_compensation)]
async fn pack(pieces: u32, State(gate): State<Gate>) -> Result<String, StepError> {
    gate.pass().await?;
    match pieces {
        0 => Err(StepError::stuck("the scales are broken")),
        1..=100 => Ok(format!("{pieces} pieces")),
        _ => Err(StepError::reject_with(OutOfStock { left: 100 })),
    }
}

/// A store with a runtime, and the routes.
pub(crate) struct Shop<S: Fresh> {
    pub(crate) store: S,
    pub(crate) place: S::Place,
    pub(crate) runtime: Runtime<S>,
    pub(crate) order: Saga<S, u32, String>,
    pub(crate) gate: Gate,
    pub(crate) app: Router,
}

impl<S: Fresh> Shop<S> {
    pub(crate) async fn new() -> Self {
        let (store, place) = S::fresh().await;
        let order = Saga::named("order").input::<u32>().step::<reserve>().step::<pack>().returns::<pack>();
        let order = order.build().unwrap();
        let gate = Gate(Arc::new(Semaphore::new(0)));
        let settings = |settings: &mut saga_core::Settings| settings.poll_interval = Duration::from_millis(20);
        let runtime =
            Runtime::builder(store.clone()).saga(&order).state(gate.clone()).settings(settings).start().await.unwrap();
        let app = routes(runtime.admin()).into_router();
        Self { store, place, runtime, order, gate, app }
    }

    /// The same shop as a process sees it that has a store and no runtime.
    pub(crate) fn without_runtime(&self) -> Router {
        routes(SagaAdmin::new(self.store.clone()).saga(&self.order)).into_router()
    }

    pub(crate) async fn start(&self, key: &str, pieces: u32) -> SagaHandle<S, String> {
        self.runtime.start(&self.order, key, pieces).await.unwrap()
    }

    /// A saga that has ended.
    pub(crate) async fn ended(&self, key: &str, pieces: u32) {
        self.gate.open(if pieces > 100 { 3 } else { 2 });
        self.start(key, pieces).await.outcome().await.unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        get(&self.app, path, &[]).await
    }
}

/// Each user sees its own sagas, and the operator sees all.
pub(crate) fn routes<S: Store>(admin: SagaAdmin<S>) -> StatusRoutes {
    status_routes(admin, |request, saga| sees(request.extensions.get::<User>(), saga))
}

fn sees(user: Option<&User>, saga: &SagaSummary) -> bool {
    match user {
        Some(User("operator")) => true,
        Some(User(name)) => saga.key.as_str().strip_prefix(name).is_some_and(|rest| rest.starts_with('-')),
        None => false,
    }
}

/// What a client got.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The sentence of a problem.
    pub(crate) fn detail(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        assert_eq!(self.json()["status"], self.status.as_u16());
        self.json()["detail"].as_str().unwrap().to_owned()
    }
}

/// A request by the operator.
pub(crate) fn request(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    request_of("operator", path, headers)
}

pub(crate) fn request_of(user: &'static str, path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::get(path).extension(User(user));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

pub(crate) async fn send(app: &Router, request: Request<Body>) -> Answer {
    let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: parts.status, headers: parts.headers, text: String::from_utf8(body.to_vec()).unwrap() }
}

pub(crate) async fn get(app: &Router, path: &str, headers: &[(&str, &str)]) -> Answer {
    send(app, request(path, headers)).await
}
