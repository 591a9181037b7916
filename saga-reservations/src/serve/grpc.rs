//! The gRPC server: the reservations, health and reflection.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tonic::server::NamedService as _;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::health;
use crate::contract::ReservationsStore;
use crate::grpc::ReservationsService;
use crate::grpc::v1::FILE_DESCRIPTOR_SET;
use crate::grpc::v1::reservations_server::ReservationsServer;

/// A connection is asked this often whether it is alive, and closed if it does not answer for so long.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// What the error of an unreadable description says.
const REFLECTION: &str = "the description of the gRPC service cannot be read";

/// Serves until `stop` is ready, then answers what is under way.
pub(super) async fn serve(
    listener: TcpListener,
    store: Arc<dyn ReservationsStore>,
    stop: impl Future<Output = ()> + Send,
) -> anyhow::Result<()> {
    let name = ReservationsServer::<ReservationsService>::NAME;
    let (reporter, health_service) = tonic_health::server::health_reporter();
    health::begin(&reporter, name).await;
    let described = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let reflection = described().build_v1().context(REFLECTION)?;
    // What grpcurl and the Python package of reflection still ask.
    let reflection_v1alpha = described().build_v1alpha().context(REFLECTION)?;
    let service = ReservationsService::new(Arc::clone(&store) as Arc<_>).into_server();
    let served = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .add_service(health_service)
        .add_service(reflection)
        .add_service(reflection_v1alpha)
        .add_service(service)
        .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), stop);
    let health = health::follow(reporter, name, store);
    tokio::select! {
        served = served => served.context("the gRPC server failed"),
        () = health => Ok(()),
    }
}
