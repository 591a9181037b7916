//! The service over a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tonic::{Request, Response, Status};

use super::v1::reservations_server::{Reservations as Service, ReservationsServer};
use super::{requests, statuses, v1};
use crate::book::{Action, FencingToken, InvalidName, Operation, Reason, Refusal, ReservationKey, ResourceName};
use crate::contract::Reservations;

/// Reservations as a gRPC service, for a server of tonic.
#[derive(Clone)]
pub struct ReservationsService {
    reservations: Arc<dyn Reservations>,
}

impl ReservationsService {
    /// A service of these reservations.
    pub fn new(reservations: Arc<dyn Reservations>) -> Self {
        Self { reservations }
    }

    /// The service as tonic's `add_service` takes it.
    pub fn into_server(self) -> ReservationsServer<Self> {
        ReservationsServer::new(self)
    }

    async fn perform(&self, key: String, action: Action) -> Result<Response<v1::Reservation>, Status> {
        let key = ReservationKey::new(key).map_err(|error| invalid(&error))?;
        let answer = self.reservations.perform(Operation::new(key, action)).await;
        answer.map(|reservation| Response::new(reservation.into())).map_err(|error| statuses::status(&error))
    }
}

#[tonic::async_trait]
impl Service for ReservationsService {
    async fn reserve(&self, request: Request<v1::ReserveRequest>) -> Result<Response<v1::Reservation>, Status> {
        let mut message = request.into_inner();
        let key = std::mem::take(&mut message.key);
        self.perform(key, Action::Reserve(requests::reserve(message))).await
    }

    async fn confirm(&self, request: Request<v1::ConfirmRequest>) -> Result<Response<v1::Reservation>, Status> {
        let message = request.into_inner();
        let late = requests::late(&message).map_err(|refusal| statuses::refused(&refusal))?;
        self.perform(message.key, Action::Confirm { token: FencingToken(message.fencing_token), late }).await
    }

    async fn release(&self, request: Request<v1::ReleaseRequest>) -> Result<Response<v1::Reservation>, Status> {
        let message = request.into_inner();
        self.perform(message.key, Action::Release { token: message.fencing_token.map(FencingToken) }).await
    }

    async fn extend(&self, request: Request<v1::ExtendRequest>) -> Result<Response<v1::Reservation>, Status> {
        let message = request.into_inner();
        let ttl = Duration::from_millis(message.ttl_millis);
        self.perform(message.key, Action::Extend { token: FencingToken(message.fencing_token), ttl }).await
    }

    async fn r#return(&self, request: Request<v1::ReturnRequest>) -> Result<Response<v1::Reservation>, Status> {
        let message = request.into_inner();
        self.perform(message.key, Action::GiveBack { token: FencingToken(message.fencing_token) }).await
    }

    async fn get(&self, request: Request<v1::GetRequest>) -> Result<Response<v1::Reservation>, Status> {
        let key = ReservationKey::new(request.into_inner().key).map_err(|error| invalid(&error))?;
        match self.reservations.find(&key).await.map_err(|error| statuses::status(&error))? {
            Some(reservation) => Ok(Response::new(reservation.into())),
            None => Err(not_found(&format!("there is no reservation {key}"))),
        }
    }

    async fn set_capacity(&self, request: Request<v1::SetCapacityRequest>) -> Result<Response<v1::Resource>, Status> {
        let message = request.into_inner();
        let name = ResourceName::new(message.resource).map_err(|error| invalid(&error))?;
        let answer = self.reservations.set_capacity(&name, message.capacity).await;
        answer.map(|resource| Response::new(resource.into())).map_err(|error| statuses::status(&error))
    }

    async fn get_resource(&self, request: Request<v1::GetResourceRequest>) -> Result<Response<v1::Resource>, Status> {
        let name = ResourceName::new(request.into_inner().resource).map_err(|error| invalid(&error))?;
        match self.reservations.resource(&name).await.map_err(|error| statuses::status(&error))? {
            Some(resource) => Ok(Response::new(resource.into())),
            None => Err(not_found(&format!("there is no resource {name}"))),
        }
    }
}

impl fmt::Debug for ReservationsService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReservationsService").finish_non_exhaustive()
    }
}

fn invalid(error: &InvalidName) -> Status {
    statuses::refused(&Refusal::from(error.clone()))
}

fn not_found(message: &str) -> Status {
    statuses::refused(&Refusal::new(Reason::NotFound, message))
}
