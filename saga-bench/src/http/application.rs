//! The same payment, by a bare handler and by one whose requests have keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use saga_core::store::StoreError;
use saga_http::{Idempotency, Problem, Tx};
use saga_postgres::{PostgresStore, sqlx};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::clock::Stopwatch;

#[derive(Debug, Serialize, Deserialize)]
struct Payment {
    number: u32,
    cents: u32,
}

#[derive(Debug, Serialize)]
struct Receipt {
    id: i64,
}

/// A schema with a table of payments, and the application on it.
pub(crate) async fn on(url: &str) -> Result<Router> {
    let store = PostgresStore::connect(url).await?;
    store
        .write(async |conn| -> Result<(), Failure> {
            let create = "CREATE TABLE IF NOT EXISTS payments \
                 (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, number bigint NOT NULL, cents bigint NOT NULL); \
                 CREATE TABLE IF NOT EXISTS payment_keys (principal text, key text, fingerprint bytea NOT NULL, \
                 response bytea, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (principal, key)); \
                 CREATE INDEX IF NOT EXISTS payment_keys_created ON payment_keys (created_at)";
            sqlx::raw_sql(create).execute(conn).await?;
            Ok(())
        })
        .await
        .map_err(|failure| anyhow!(failure.0))?;
    let idempotency = Idempotency::of_store(store.clone()).principal(|_| Some("ada".to_owned())).required();
    let routes =
        Router::new().route("/bare", post(bare)).route("/row", post(with_row)).route("/by-hand", post(by_hand));
    Ok(routes.route("/keyed", post(idempotency.handler(keyed))).with_state(store))
}

async fn bare(State(store): State<PostgresStore>, Json(payment): Json<Payment>) -> Result<Json<Receipt>, Problem> {
    let paid: Result<Receipt, Failure> = store.write(async |conn| Ok(pay(conn, &payment).await?)).await;
    paid.map(Json).map_err(|failure| failed(&failure.0))
}

/// The least that keeping a key can cost: its row is written by the statement of the payment, and nothing is looked up.
async fn with_row(
    State(store): State<PostgresStore>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Receipt>, Problem> {
    let (key, fingerprint, payment) = read(&headers, &body)?;
    let paid: Result<Receipt, Failure> = store
        .write(async |conn| {
            let pay = "WITH kept AS (INSERT INTO payment_keys (principal, key, fingerprint, response) \
                 VALUES ('bob', $1, $2, $3)) INSERT INTO payments (number, cents) VALUES ($4, $5) RETURNING id";
            let pay = sqlx::query_scalar(pay).bind(key).bind(&fingerprint).bind(b"{\"id\":100000}".as_slice());
            let pay = pay.bind(i64::from(payment.number)).bind(i64::from(payment.cents));
            Ok(Receipt { id: pay.fetch_one(conn).await? })
        })
        .await;
    paid.map(Json).map_err(|failure| failed(&failure.0))
}

/// The key of a request, its fingerprint and its payment.
fn read<'a>(headers: &'a HeaderMap, body: &[u8]) -> Result<(&'a str, Vec<u8>, Payment), Problem> {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    let key = key.ok_or_else(|| failed(&"the request has no Idempotency-Key"))?;
    let payment = serde_json::from_slice(body).map_err(|error| failed(&error))?;
    Ok((key, Sha256::digest(body).to_vec(), payment))
}

/// The usual pattern: the key is inserted first, and its row gets the response at the end.
async fn by_hand(
    State(store): State<PostgresStore>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Receipt>, Problem> {
    let (key, fingerprint, payment) = read(&headers, &body)?;
    let paid: Result<Receipt, Failure> = store
        .write(async |conn| {
            let claim = "INSERT INTO payment_keys (principal, key, fingerprint) VALUES ('ada', $1, $2) \
                 ON CONFLICT DO NOTHING RETURNING true";
            let claim = sqlx::query_scalar::<_, bool>(claim).bind(key).bind(&fingerprint);
            if claim.fetch_optional(&mut *conn).await?.is_none() {
                return Err(Failure("the key was used before".to_owned()));
            }
            let receipt = pay(conn, &payment).await?;
            let keep = "UPDATE payment_keys SET response = $2 WHERE principal = 'ada' AND key = $1";
            let response = serde_json::to_vec(&receipt).unwrap_or_default();
            sqlx::query(keep).bind(key).bind(response).execute(conn).await?;
            Ok(receipt)
        })
        .await;
    paid.map(Json).map_err(|failure| failed(&failure.0))
}

async fn keyed(mut tx: Tx<'_, PostgresStore>, Json(payment): Json<Payment>) -> Result<Json<Receipt>, Problem> {
    pay(tx.conn(), &payment).await.map(Json).map_err(|error| failed(&error))
}

async fn pay(conn: &mut PgConnection, payment: &Payment) -> Result<Receipt, sqlx::Error> {
    let insert = "INSERT INTO payments (number, cents) VALUES ($1, $2) RETURNING id";
    let insert = sqlx::query_scalar(insert).bind(i64::from(payment.number)).bind(i64::from(payment.cents));
    Ok(Receipt { id: insert.fetch_one(conn).await? })
}

struct Failure(String);

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

fn failed(error: &impl std::fmt::Display) -> Problem {
    Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, error)
}

/// Sends requests with these numbers, so many at once, and says how long that took.
pub(super) async fn drive(
    app: &Router,
    path: &'static str,
    numbers: std::ops::Range<u32>,
    in_flight: u32,
) -> Result<Duration> {
    let watch = Stopwatch::started();
    let next = Arc::new(AtomicU32::new(numbers.start));
    let mut clients: JoinSet<Result<()>> = JoinSet::new();
    for _ in 0..in_flight {
        let (app, next, end) = (app.clone(), Arc::clone(&next), numbers.end);
        clients.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return Ok(());
                }
                send(&app, path, number).await?;
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.context("a client panicked")??;
    }
    Ok(watch.elapsed())
}

/// Sends one request.
pub(super) async fn send(app: &Router, path: &str, number: u32) -> Result<()> {
    let response = app.clone().oneshot(payment(path, number)?).await?;
    ensure!(response.status().is_success(), "a request was answered with {}", response.status());
    Ok(())
}

/// The request for a payment, with its key.
pub(crate) fn payment(path: &str, number: u32) -> Result<Request> {
    let request = Request::post(path)
        .header("idempotency-key", format!("\"payment-{number}\""))
        .header("content-type", "application/json")
        .body(Body::from(serde_json::to_vec(&Payment { number, cents: 1200 })?))?;
    Ok(request)
}
