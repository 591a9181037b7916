//! What a test changes is only how operations are carried out.

use async_trait::async_trait;
use saga_reservations::{
    Operation, Reservation, ReservationKey, Reservations, ReservationsError, Resource, ResourceName,
};

/// What carries operations out over other reservations.
#[async_trait]
pub(crate) trait Between: Send + Sync + 'static {
    fn inner(&self) -> &dyn Reservations;

    async fn perform(&self, operation: Operation) -> Result<Reservation, ReservationsError>;
}

/// Reservations whose operations it carries out.
pub(crate) struct Interposed<B>(pub(crate) B);

#[async_trait]
impl<B: Between> Reservations for Interposed<B> {
    async fn perform(&self, operation: Operation) -> Result<Reservation, ReservationsError> {
        self.0.perform(operation).await
    }

    async fn find(&self, key: &ReservationKey) -> Result<Option<Reservation>, ReservationsError> {
        self.0.inner().find(key).await
    }

    async fn set_capacity(&self, resource: &ResourceName, capacity: u64) -> Result<Resource, ReservationsError> {
        self.0.inner().set_capacity(resource, capacity).await
    }

    async fn resource(&self, name: &ResourceName) -> Result<Option<Resource>, ReservationsError> {
        self.0.inner().resource(name).await
    }
}
