use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use saga_servers::{Certificate, TansuServer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// A broker behind a proxy that ends TLS, since tansu has none in this build. It advertises the proxy's port on `localhost`.
pub(crate) struct TlsBroker {
    pub(crate) port: u16,
    pub(crate) tansu: TansuServer,
    serving: JoinHandle<()>,
}

impl TlsBroker {
    /// Shows a certificate. With an authority, it asks clients for a certificate that this has signed.
    pub(crate) async fn start(certificate: &Certificate, of_clients: Option<&Path>) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(config(certificate, of_clients)));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tansu = TansuServer::start_behind(&format!("localhost:{port}")).await.unwrap();
        let serving = tokio::spawn(serve(listener, acceptor, tansu.brokers()));
        Self { port, tansu, serving }
    }
}

impl Drop for TlsBroker {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn config(Certificate { certificate, key }: &Certificate, of_clients: Option<&Path>) -> ServerConfig {
    // A process that was built with two sources of cryptography cannot choose by itself. Another test may have chosen.
    _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
    let builder = match of_clients {
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
            ServerConfig::builder().with_client_cert_verifier(verifier)
        }
        None => ServerConfig::builder().with_no_client_auth(),
    };
    builder.with_single_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap()).unwrap()
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, to: String) {
    while let Ok((client, _)) = listener.accept().await {
        let (acceptor, to) = (acceptor.clone(), to.clone());
        tokio::spawn(async move {
            // A connection that is refused is closed; the client has the reason.
            if let (Ok(mut client), Ok(mut broker)) = (acceptor.accept(client).await, TcpStream::connect(to).await) {
                _ = tokio::io::copy_bidirectional(&mut client, &mut broker).await;
            }
        });
    }
}
