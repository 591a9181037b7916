//! The HTTP client that calls the server: connections that stay open, without a delay of small packets.

use std::error::Error;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use restate_sdk::ingress::RequestExecutor;

/// Calls the server.
#[derive(Debug, Clone)]
pub(crate) struct Ingress {
    client: Client<HttpConnector, Full<Bytes>>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[error("the Restate server does not answer")]
pub(crate) struct NoAnswer(#[source] Box<dyn Error + Send + Sync>);

impl Ingress {
    /// A client without connections yet.
    pub(crate) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self { client: Client::builder(TokioExecutor::new()).build(connector) }
    }
}

impl RequestExecutor for Ingress {
    type Error = NoAnswer;

    async fn execute(&self, request: Request<Bytes>) -> Result<Response<Bytes>, NoAnswer> {
        let response = self.client.request(request.map(Full::new)).await.map_err(|error| NoAnswer(error.into()))?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| NoAnswer(error.into()))?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }
}
