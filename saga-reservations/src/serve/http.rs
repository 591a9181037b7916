//! The HTTP server.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

/// How long a client may take to send the head of a request, also the next one of a connection. `axum::serve` has no limit, so
/// that clients which send nothing could take all connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves until `stop` is ready, then answers what is under way.
pub(super) async fn serve(listener: TcpListener, app: Router, stop: impl Future<Output = ()> + Send) {
    serve_within(HEAD_TIMEOUT, listener, app, stop).await;
}

async fn serve_within(
    head_timeout: Duration,
    mut listener: TcpListener,
    app: Router,
    stop: impl Future<Output = ()> + Send,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head_timeout);
    let (connections, mut stop) = (GracefulShutdown::new(), pin!(stop));
    loop {
        let (stream, _) = tokio::select! {
            // It waits and tries again where the process has too many files open.
            accepted = Listener::accept(&mut listener) => accepted,
            () = &mut stop => break,
        };
        let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app.clone()));
        let connection = connections.watch(connection);
        drop(tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
        }));
    }
    drop(listener);
    connections.shutdown().await;
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_client_that_sends_no_whole_head_is_left() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let app = Router::new().route("/", get(|| async { "here" }));
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let serving = tokio::spawn(serve_within(Duration::from_secs(1), listener, app, stopped));

        let mut silent = TcpStream::connect(addr).await.unwrap();
        silent.write_all(b"GET / HTTP/1.1\r\nHost: h").await.unwrap();
        let mut answer = Vec::new();
        _ = silent.read_to_end(&mut answer).await;
        assert!(answer.is_empty(), "{answer:?}");

        let mut client = TcpStream::connect(addr).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
        client.read_to_end(&mut answer).await.unwrap();
        assert!(answer.ends_with(b"here"), "{}", String::from_utf8_lossy(&answer));
        drop(stop);
        serving.await.unwrap();
    }
}
