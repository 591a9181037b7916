//! The servers of one process over one store.

use std::future::Future;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{grpc, http};
use crate::Sweeper;
use crate::contract::ReservationsStore;
use crate::http::routes;

/// How long requests may take that are under way when the server ends.
const DRAIN: Duration = Duration::from_secs(10);

/// Servers that listen and do not serve yet.
pub(super) struct Server {
    store: Arc<dyn ReservationsStore>,
    sweeper: Sweeper,
    grpc: Option<TcpListener>,
    http: Option<TcpListener>,
}

impl Server {
    pub(super) async fn bind(
        store: Arc<dyn ReservationsStore>,
        sweeper: Sweeper,
        grpc: Option<SocketAddr>,
        http: Option<SocketAddr>,
    ) -> anyhow::Result<Self> {
        Ok(Self { store, sweeper, grpc: listen("gRPC", grpc).await?, http: listen("HTTP", http).await? })
    }

    /// Serves until `stop` is ready, then answers what is under way.
    pub(super) async fn run(self, stop: impl Future<Output = &'static str> + Send) -> anyhow::Result<()> {
        let Self { store, sweeper, grpc, http } = self;
        let (ends, ending) = watch::channel(false);
        let grpc_store = Arc::clone(&store);
        let serve_grpc = when_given(grpc, |listener| grpc::serve(listener, grpc_store, ended(ending.clone())));
        let app = routes(Arc::clone(&store));
        let serve_http = when_given(http, async |listener| {
            http::serve(listener, app, ended(ending.clone())).await;
            Ok(())
        });
        let serving = async { tokio::try_join!(serve_grpc, serve_http).map(drop) };
        let stopping = async {
            let signal = stop.await;
            tracing::info!(signal, "the server answers what is under way, and ends");
            _ = ends.send(true);
            tokio::time::sleep(DRAIN).await;
            tracing::warn!("requests were still under way after {DRAIN:?}, and are dropped");
        };
        tokio::select! {
            served = serving => served,
            () = stopping => Ok(()),
            () = sweeper.run(store) => Ok(()),
        }
    }
}

async fn listen(what: &str, address: Option<SocketAddr>) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("{what} cannot listen on {address}; choose another address"))?;
    let mut stdout = std::io::stdout().lock();
    // A closed standard output is no reason not to serve.
    _ = writeln!(stdout, "{what} listens on {}", listener.local_addr()?);
    _ = stdout.flush();
    Ok(Some(listener))
}

/// Runs the server if it has a listener; without one it ends when the others do.
async fn when_given<F: Future<Output = anyhow::Result<()>>>(
    listener: Option<TcpListener>,
    serve: impl FnOnce(TcpListener) -> F,
) -> anyhow::Result<()> {
    match listener {
        Some(listener) => serve(listener).await,
        None => Ok(()),
    }
}

async fn ended(mut ending: watch::Receiver<bool>) {
    // An error says that the sender is gone, and so is the server.
    _ = ending.wait_for(|is_ending| *is_ending).await;
}
