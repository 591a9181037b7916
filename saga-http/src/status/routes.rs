//! The routes, and who may see what.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::http::request::Parts;
use axum::routing::get;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use saga_core::Tenant;
use saga_core::engine::{SagaAdmin, SagaSummary};
use saga_core::store::{DeadLetter, Store};
use tokio::sync::Semaphore;

use super::polling::Polling;
use super::sagas::Sagas;
use super::service::{MaySee, Service, TenantOf};
use super::{dead_letters, events, list, long_poll};

/// How many clients wait for changes at the same time, if the application does not say.
const WAITING_MAX: usize = 1_000;

/// The routes that show sagas: [`status_routes`] makes them, and `Router::merge` takes them.
#[must_use]
pub struct StatusRoutes {
    sagas: Arc<dyn Sagas>,
    may_see: MaySee<SagaSummary>,
    may_see_letter: Option<MaySee<DeadLetter>>,
    tenant: Option<TenantOf>,
    waiting_max: usize,
    until: Option<Shared<BoxFuture<'static, ()>>>,
}

/// The routes that show sagas to the clients that `may_see` them. They only read.
///
/// | route | shows |
/// |---|---|
/// | `GET /sagas/{key}` | one saga: the JSON of [`SagaStatus`](saga_core::SagaStatus), and `problem` if it was compensated or is stuck |
/// | `GET /sagas/{key}/events` | the same as server-sent events, after each change |
/// | `GET /sagas` | a page of sagas: `status`, `definition`, `after`, `limit` |
/// | `GET /dead-letters`, `GET /dead-letters/{id}` | messages that could not be handled, with [`StatusRoutes::dead_letters`] |
///
/// `may_see` gets the request without its body, in which a layer of the application has put who asks, and a saga. It is asked for
/// each saga and again for each event. A saga that the client may not see is answered as one that does not exist. A list leaves
/// it out, so that a page may have fewer entries than `limit`: the list goes on as long as `next` is not `null`.
///
/// `admin` is that of a runtime, or one on a bare store with the definitions of the sagas. With a runtime, clients that wait
/// learn of the changes of this process at once; those of other processes are polled, by one query for all clients.
///
/// **Waiting.** The `ETag` is the revision of the saga. With `Prefer: wait=30`, a request with `If-None-Match` is answered as soon as
/// the saga has another revision, or after 30 seconds with 304; a request without it is answered when the saga has ended or is
/// stuck, or after 30 seconds with what it is then. The longest wait is one minute. The stream of events begins with the status now,
/// unless `Last-Event-ID` is its revision, and ends after the event in which the saga has ended; asked again after that, it answers
/// 204, so that a browser stops.
///
/// # Examples
/// ```
/// use axum::Router;
/// use saga_http::status_routes;
/// # use axum::body::{Body, to_bytes};
/// # use axum::http::{Request, StatusCode};
/// # use saga_core::memory::MemoryStore;
/// # use saga_core::{Runtime, Saga, StepError, saga_step};
/// # use tower::ServiceExt as _;
/// # #[saga_step(no_compensation)]
/// # async fn greet(_name: String) -> Result<(), StepError> { Ok(()) }
///
/// #[derive(Clone)]
/// struct UserId(String);
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let greeting = Saga::named("greeting").input::<String>().step::<greet>().build()?;
/// # let runtime = Runtime::builder(MemoryStore::new()).saga(&greeting).start().await?;
/// let routes = status_routes(runtime.admin(), |request, saga| {
///     // The layer that logs users in has put this into the request.
///     request.extensions.get::<UserId>().is_some_and(|user| saga.key.as_str().starts_with(&format!("{}:", user.0)))
/// });
/// let app: Router = Router::new().merge(routes);
///
/// runtime.start(&greeting, "ada:7", "Ada".to_owned()).await?.outcome().await?;
/// let ask = |user: &str| {
///     let request = Request::get("/sagas/ada:7").extension(UserId(user.to_owned()));
///     app.clone().oneshot(request.body(Body::empty()).unwrap())
/// };
/// assert_eq!(ask("ada").await?.status(), StatusCode::OK);
/// assert_eq!(ask("bob").await?.status(), StatusCode::NOT_FOUND);
/// # runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub fn status_routes<S: Store>(
    admin: SagaAdmin<S>,
    may_see: impl Fn(&Parts, &SagaSummary) -> bool + Send + Sync + 'static,
) -> StatusRoutes {
    StatusRoutes {
        sagas: Arc::new(admin),
        may_see: Arc::new(may_see),
        may_see_letter: None,
        tenant: None,
        waiting_max: WAITING_MAX,
        until: None,
    }
}

impl StatusRoutes {
    /// Serves dead letters too, to the clients that `may_see` them. They contain what was sent, so that this is for operators.
    pub fn dead_letters(mut self, may_see: impl Fn(&Parts, &DeadLetter) -> bool + Send + Sync + 'static) -> Self {
        self.may_see_letter = Some(Arc::new(may_see));
        self
    }

    /// Serves several tenants: a request sees the sagas of the tenant that this finds, and is answered with 403 if it finds
    /// none. Take the tenant from what the login says, never from a parameter. Without this, the tenant is that of the admin.
    pub fn tenant(mut self, tenant: impl Fn(&Parts) -> Option<Tenant> + Send + Sync + 'static) -> Self {
        self.tenant = Some(Arc::new(tenant));
        self
    }

    /// How many clients may wait for changes at the same time. The default is 1,000; another one is answered with 503.
    pub fn waiting_max(mut self, clients: usize) -> Self {
        self.waiting_max = clients.min(Semaphore::MAX_PERMITS);
        self
    }

    /// Answers all clients that wait when this future ends, and lets no more wait. Give it the signal that stops the server,
    /// which otherwise waits for streams of events to end.
    pub fn until(mut self, stopped: impl Future<Output = ()> + Send + 'static) -> Self {
        self.until = Some(stopped.boxed().shared());
        self
    }

    /// The routes as a router, to nest them.
    pub fn into_router<T: Clone + Send + Sync + 'static>(self) -> Router<T> {
        let serves_letters = self.may_see_letter.is_some();
        let mut router = Router::new()
            .route("/sagas", get(list::sagas))
            .route("/sagas/{key}", get(long_poll::saga))
            .route("/sagas/{key}/events", get(events::events));
        if serves_letters {
            router = router
                .route("/dead-letters", get(dead_letters::dead_letters))
                .route("/dead-letters/{id}", get(dead_letters::dead_letter));
        }
        router.with_state(Arc::new(self.into_service()))
    }

    fn into_service(self) -> Service {
        Service {
            polling: Polling::new(Arc::clone(&self.sagas)),
            sagas: self.sagas,
            may_see: self.may_see,
            may_see_letter: self.may_see_letter,
            tenant: self.tenant,
            waiting: Arc::new(Semaphore::new(self.waiting_max)),
            until: self.until,
        }
    }
}

impl<T: Clone + Send + Sync + 'static> From<StatusRoutes> for Router<T> {
    fn from(routes: StatusRoutes) -> Self {
        routes.into_router()
    }
}

impl fmt::Debug for StatusRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusRoutes")
            .field("serves_dead_letters", &self.may_see_letter.is_some())
            .field("waiting_max", &self.waiting_max)
            .finish_non_exhaustive()
    }
}
