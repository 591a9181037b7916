//! gRPC's health follows the store.

use std::sync::Arc;
use std::time::Duration;

use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::contract::ReservationsStore;

/// How often the store is asked, and how long it may take to answer.
const INTERVAL: Duration = Duration::from_secs(1);

/// Until the store was asked, nothing is served. A client may ask from the beginning.
pub(super) async fn begin(reporter: &HealthReporter, service: &'static str) {
    tell(reporter, service, ServingStatus::NotServing).await;
}

/// Tells the clients that watch the health whether the store answers, until it is dropped.
pub(super) async fn follow(reporter: HealthReporter, service: &'static str, store: Arc<dyn ReservationsStore>) {
    let mut was_serving = None;
    loop {
        let is_serving = matches!(tokio::time::timeout(INTERVAL, store.ping()).await, Ok(Ok(())));
        if was_serving.replace(is_serving) != Some(is_serving) {
            tracing::info!(is_serving, "the health of the reservations changed");
            let status = if is_serving { ServingStatus::Serving } else { ServingStatus::NotServing };
            tell(&reporter, service, status).await;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn tell(reporter: &HealthReporter, service: &'static str, status: ServingStatus) {
    reporter.set_service_status(service, status).await;
    // The whole server.
    reporter.set_service_status("", status).await;
}
