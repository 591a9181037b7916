//! The process that the kills kill: this program again, told by its environment to serve.

use std::convert::Infallible;
use std::io::Write as _;
use std::sync::OnceLock;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use rusqlite::hooks::{Action, Wal};
use saga_core::memory::MemoryStore;
use saga_http::{Idempotency, Problem, Tx};
use saga_postgres::PostgresStore;
use saga_sqlite::SqliteStore;
use tokio::net::TcpListener;

use crate::support::application::{routes, user};
use crate::support::{Application, Ledger as _, Order};

/// Where the store of the process is.
pub(crate) const ADDRESS: &str = "SAGA_HTTP_TEST_STORE";
/// Where a process on SQLite stops.
pub(crate) const STOP_AT: &str = "SAGA_HTTP_TEST_STOP_AT";

/// A point of a request on SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    Read,
    Admitted,
    Written,
    Recorded,
    Committed,
    Answered,
}

impl Point {
    pub(crate) const ALL: [Self; 6] =
        [Self::Read, Self::Admitted, Self::Written, Self::Recorded, Self::Committed, Self::Answered];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Admitted => "admitted",
            Self::Written => "written",
            Self::Recorded => "recorded",
            Self::Committed => "committed",
            Self::Answered => "answered",
        }
    }

    /// Says that the process is here, and stays until it is killed, if it was told to stop here.
    fn reach(self) {
        static STOP_HERE: OnceLock<Option<String>> = OnceLock::new();
        if STOP_HERE.get_or_init(|| std::env::var(STOP_AT).ok()).as_deref() != Some(self.name()) {
            return;
        }
        say(&format!("stopped at {}", self.name()));
        loop {
            std::thread::park();
        }
    }
}

fn say(line: &str) {
    let mut output = std::io::stdout();
    writeln!(output, "{line}").unwrap();
    output.flush().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn serves_until_it_is_killed() {
    // In the process of the tests there is nothing to serve.
    let Ok(store) = std::env::var(ADDRESS) else { return };
    let app = if store.starts_with("postgres") {
        let shop = Application::<MemoryStore>::start().await.shop;
        let store = PostgresStore::connect(&store).await.unwrap();
        routes(&Idempotency::of_store(store).principal(user).required(), &shop.on())
    } else {
        let store = SqliteStore::open(&store).await.unwrap();
        let idempotency = Idempotency::of_store(store).principal(user).required();
        Router::new().route("/payments", post(idempotency.handler(pay))).layer(from_fn(around))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    say(&format!("listening on {}", listener.local_addr().unwrap()));
    axum::serve(listener, app).await.unwrap();
}

async fn around(request: Request, next: Next) -> Result<Response, Infallible> {
    Point::Read.reach();
    let response = next.run(request).await;
    Point::Answered.reach();
    Ok(response)
}

/// It looks on as the store writes after it.
async fn pay(mut tx: Tx<'_, SqliteStore>, Json(order): Json<Order>) -> Result<String, Problem> {
    Point::Admitted.reach();
    let written = |_: Action, _: &str, table: &str, _: i64| {
        if table == "saga_idempotency_keys" {
            Point::Recorded.reach();
        }
    };
    tx.conn().update_hook(Some(written)).unwrap();
    let committed = |_: &Wal, _| {
        Point::Committed.reach();
        Ok(())
    };
    tx.conn().wal_hook(Some(committed));
    let payments = SqliteStore::pay(tx.conn(), &order.name).await;
    Point::Written.reach();
    let payments = payments.map_err(|error| Problem::new(http::StatusCode::CONFLICT, error))?;
    Ok(format!("{payments} of {}", order.name))
}
