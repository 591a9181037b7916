//! The proxy itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::connection::{Shared, serve};
use super::cut::Cut;
use super::traffic::{Counts, Traffic};
use crate::error::Error;
use crate::url::Url;

/// A TCP proxy before one server. It passes everything on until it is told otherwise.
///
/// It runs on the runtime that started it; dropped, it closes all its connections.
///
/// ```no_run
/// # async fn test() -> Result<(), saga_servers::Error> {
/// use saga_servers::{Cut, Direction, FaultProxy, shared};
///
/// let proxy = FaultProxy::start(&shared::postgres_url()).await?;
/// let url = proxy.url();
/// // ... a client connects to `url` ...
/// proxy.cut(Cut::after(Direction::ToClient, 0).seeing(Direction::ToServer, b"COMMIT"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FaultProxy {
    url: String,
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl FaultProxy {
    /// Listens on a free port for the server at an address such as `postgres://..@host:port/..`. The server need not
    /// be there: each connection reaches for it anew.
    ///
    /// # Errors
    /// The address cannot be read, or there is no free port.
    ///
    /// # Cancel safety
    /// Dropped, nothing was started.
    pub async fn start(server: &str) -> Result<Self, Error> {
        let server_url = Url::parse(server)?;
        let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listening.map_err(Error::system("listen on a free port"))?;
        let address = listener.local_addr().map_err(Error::system("read the port"))?;
        let url = server_url.at("127.0.0.1", address.port());
        let shared = Arc::new(Shared::new());
        let server = (server_url.host.to_owned(), server_url.port);
        let accepting = tokio::spawn(accept(listener, server, Arc::clone(&shared)));
        Ok(Self { url, address, shared, accepting })
    }

    /// The server's address through the proxy, with its user, path and all.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Arms a cut. It ends one connection and is used up then; one that was armed before is replaced.
    ///
    /// What passed before the cut arrives; then both sides see the connection closed.
    pub fn cut(&self, cut: Cut) {
        self.shared.state().armed = Some(cut);
    }

    /// Takes back an armed cut, and says whether it was still armed.
    pub fn disarm(&self) -> bool {
        self.shared.state().armed.take().is_some()
    }

    /// Closes all connections that are open.
    pub fn cut_all(&self) {
        self.shared.generation.send_modify(|generation| *generation += 1);
    }

    /// From now on traffic is like this, on open connections and new ones.
    pub fn set_traffic(&self, traffic: Traffic) {
        self.shared.traffic.send_replace(traffic);
    }

    /// What went through so far.
    pub fn counts(&self) -> Counts {
        self.shared.state().counts
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The connections end with this future.
async fn accept(listener: TcpListener, server: (String, u16), shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A connection that fails while it is taken is its client's matter.
                let Ok((client, _)) = accepted else { continue };
                if *shared.traffic.borrow() == Traffic::RefusesNew {
                    continue;
                }
                shared.state().counts.connections += 1;
                connections.spawn(serve(client, server.clone(), Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
