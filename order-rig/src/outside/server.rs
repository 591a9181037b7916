use std::{io::Write, net::SocketAddr};

use anyhow::Context;
use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};

use super::{Reply, Services};

/// The header that carries the key, as other services name it.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Serves the gateway and the carrier over HTTP, and prints where. It ends with the process.
pub async fn serve(services: Services, address: SocketAddr) -> anyhow::Result<()> {
    let listener =
        tokio::net::TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let mut out = std::io::stdout();
    writeln!(out, "listening on http://{}", listener.local_addr()?)?;
    out.flush()?;
    let app = Router::new().route("/tally", get(tally)).route("/{operation}", post(call)).with_state(services);
    axum::serve(listener, app).await.context("cannot serve")
}

async fn call(
    State(services): State<Services>,
    Path(operation): Path<String>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let key = headers.get(IDEMPOTENCY_KEY).and_then(|key| key.to_str().ok()).filter(|key| !key.is_empty());
    let reply = match key {
        Some(key) => services.answer(&format!("/{operation}"), key, body).await,
        None => Reply::error(400, "an Idempotency-Key is needed"),
    };
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(reply.body)).into_response()
}

async fn tally(State(services): State<Services>) -> Response {
    match services.tally() {
        Ok(tally) => Json(tally).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({ "error": error.to_string() }))).into_response(),
    }
}
