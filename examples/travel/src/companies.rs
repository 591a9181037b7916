//! The companies outside as a server that forgets everything when it stops. Replace it with their real addresses.
//!
//! They honour idempotency keys: a key is booked once, however often it is asked for. The destination decides how they
//! behave, so that a test can choose.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use axum::{Extension, Json, Router};
use reqwest::Url;
use saga_core::memory::MemoryStore;
use saga_http::{ClaimedKey, Idempotency, Problem};
use tokio::net::TcpListener;

use crate::providers::{FLIGHTS, MAILS, POLICIES, Ticket};
use crate::trip::Leg;

/// There is no flight to this place.
pub const NO_FLIGHTS: &str = "Atlantis";
/// The airline books a flight to this place, and does not answer the first call.
pub const NO_ANSWER: &str = "Limbo";

const FLIGHT_CENTS: i64 = 12_000;

/// What the companies have booked.
#[derive(Debug, Clone, Default)]
pub struct Companies {
    pub airline: Book,
    pub insurer: Book,
    pub mail: Book,
}

impl Companies {
    /// Starts the server, and returns its address.
    pub async fn listen(&self) -> anyhow::Result<Url> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen for the companies")?;
        let address = Url::parse(&format!("http://{}", listener.local_addr()?))?;
        let routes = self.routes();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(address)
    }

    fn routes(&self) -> Router {
        // All keys are those of the travel agency, the only customer.
        let keys = Idempotency::of_store(MemoryStore::new()).principal(|_| Some("travel agency".to_owned())).required();
        let booking = |book: &Book, what: &str| {
            Router::new()
                .route(&format!("/{what}"), post(book_by_key).layer(keys.claim_first()))
                .route(&format!("/{what}/{{key}}"), delete(cancel))
                .with_state(book.clone())
        };
        Router::new()
            .route(&format!("/{FLIGHTS}"), post(book_flight).layer(keys.claim_first()))
            .route(&format!("/{FLIGHTS}/{{key}}"), get(find_flight).delete(cancel))
            .with_state(self.airline.clone())
            .merge(booking(&self.insurer, POLICIES))
            .merge(booking(&self.mail, MAILS))
    }
}

async fn book_flight(
    State(airline): State<Book>,
    Extension(key): Extension<ClaimedKey>,
    Json(leg): Json<Leg>,
) -> Result<Json<Ticket>, Problem> {
    if leg.to == NO_FLIGHTS {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("no flight goes to {}", leg.to)));
    }
    airline.book(key.key().as_str())?;
    if leg.to == NO_ANSWER {
        std::future::pending::<()>().await;
    }
    Ok(Json(ticket(key.key().as_str())))
}

async fn find_flight(State(airline): State<Book>, Path(key): Path<String>) -> Result<Json<Ticket>, Problem> {
    let unknown = || Problem::new(StatusCode::NOT_FOUND, format!("no flight is booked with the key {key}"));
    airline.booked().contains(&key).then(|| Json(ticket(&key))).ok_or_else(unknown)
}

async fn book_by_key(State(book): State<Book>, Extension(key): Extension<ClaimedKey>) -> Result<(), Problem> {
    book.book(key.key().as_str())
}

async fn cancel(State(book): State<Book>, Path(key): Path<String>) {
    book.cancel(&key);
}

fn ticket(key: &str) -> Ticket {
    Ticket { number: format!("ticket of {key}"), cents: FLIGHT_CENTS }
}

/// What a company has booked, by key.
#[derive(Debug, Clone, Default)]
pub struct Book(Arc<Mutex<BTreeMap<String, Entry>>>);

#[derive(Debug, Clone, Default)]
struct Entry {
    calls: u32,
    is_cancelled: bool,
}

impl Book {
    fn book(&self, key: &str) -> Result<(), Problem> {
        let mut entries = self.lock();
        let entry = entries.entry(key.to_owned()).or_default();
        if entry.is_cancelled {
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "this key was cancelled"));
        }
        entry.calls += 1;
        Ok(())
    }

    fn cancel(&self, key: &str) {
        self.lock().entry(key.to_owned()).or_default().is_cancelled = true;
    }

    /// The keys that are booked.
    pub fn booked(&self) -> Vec<String> {
        let entries = self.lock();
        entries.iter().filter(|(_, entry)| !entry.is_cancelled).map(|(key, _)| key.clone()).collect()
    }

    /// How often this key was booked.
    pub fn calls(&self, key: &str) -> u32 {
        self.lock().get(key).map_or(0, |entry| entry.calls)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
