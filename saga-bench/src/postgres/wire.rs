//! Counts round trips: a proxy between a contender and the server, which no measured run goes through.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const BUFFER_BYTES: usize = 64 * 1024;

/// A proxy in front of the server.
pub(super) struct Wire {
    port: u16,
    round_trips: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Wire {
    pub(super) async fn before(port: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let own = listener.local_addr()?.port();
        let round_trips = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&round_trips);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, port, Arc::clone(&counted)));
            }
        });
        Ok(Self { port: own, round_trips, accepting })
    }

    /// The same address, through the proxy.
    pub(super) fn url(&self, url: &str, port: u16) -> String {
        url.replacen(&format!(":{port}/"), &format!(":{}/", self.port), 1)
    }

    /// How often a client spoke behind an answer, on all connections.
    pub(super) fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(client: TcpStream, port: u16, round_trips: Arc<AtomicU64>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    if client.set_nodelay(true).and_then(|()| server.set_nodelay(true)).is_err() {
        return;
    }
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let client_spoke = Arc::new(AtomicBool::new(false));
    let answered = Arc::clone(&client_spoke);
    let answers = tokio::spawn(async move {
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Ok(bytes @ 1..) = from_server.read(&mut buffer).await {
            answered.store(false, Ordering::Relaxed);
            if to_client.write_all(&buffer[..bytes]).await.is_err() {
                break;
            }
        }
    });
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(bytes @ 1..) = from_client.read(&mut buffer).await {
        if !client_spoke.swap(true, Ordering::Relaxed) {
            round_trips.fetch_add(1, Ordering::Relaxed);
        }
        if to_server.write_all(&buffer[..bytes]).await.is_err() {
            break;
        }
    }
    drop(to_server.shutdown().await);
    drop(answers.await);
}
