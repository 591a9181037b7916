//! The client of Python's httpx, which is not part of this project.

use saga_postgres::PostgresStore;
use saga_servers::python_with_httpx;
use saga_sqlite::SqliteStore;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::support::{Application, Ledger};

/// Serves the application, and runs the client against it.
async fn httpx<S: Ledger>() {
    let shop = Application::<S>::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(axum::serve(listener, shop.app.clone()).into_future());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/client.py");
    let output = Command::new(python_with_httpx().unwrap()).args([script, &url]).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serving.abort();
    assert_eq!(shop.store.payments("rent").await, 1);
    assert_eq!(shop.store.payments("at-once").await, 1);
    assert_eq!(shop.store.payments("streamed").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn httpx_gets_one_effect_on_sqlite() {
    httpx::<SqliteStore>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn httpx_gets_one_effect_on_postgres() {
    httpx::<PostgresStore>().await;
}
