//! Reservations that a server keeps.

use std::time::Duration;

use async_trait::async_trait;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};

use super::v1::reservations_client::ReservationsClient as Stub;
use super::{convert, errors, v1};
use crate::ReservationsError;
use crate::book::{
    Action, FencingToken, Late, Operation, Reason, Reservation, ReservationKey, Reserve, Resource, ResourceName,
};
use crate::contract::Reservations;

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection is asked this often whether it is alive, and given up if it does not answer for so long. Without that, each call
/// would fail until the system gives it up, after a quarter of an hour.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Reservations that a server keeps, over gRPC. The connection is made when it is needed, and again when it broke.
#[derive(Debug, Clone)]
pub struct RemoteReservations {
    stub: Stub<Channel>,
}

impl RemoteReservations {
    /// The reservations of the server at this address, such as `http://127.0.0.1:50051`.
    ///
    /// # Errors
    /// When it is no address.
    pub fn connect(url: &str) -> Result<Self, ReservationsError> {
        let endpoint = Endpoint::from_shared(url.to_owned());
        let endpoint = endpoint.map_err(|error| ReservationsError::unavailable("read the server's address", error))?;
        let endpoint = endpoint.timeout(TIMEOUT).connect_timeout(CONNECT_TIMEOUT);
        let endpoint = endpoint.http2_keep_alive_interval(KEEPALIVE_EVERY).keep_alive_timeout(KEEPALIVE_TIMEOUT);
        Ok(Self::on_channel(endpoint.connect_lazy()))
    }

    /// The reservations behind a channel of tonic, which has its own limits, credentials and balancing.
    pub fn on_channel(channel: Channel) -> Self {
        Self { stub: Stub::new(channel) }
    }

    async fn reserve(&self, key: ReservationKey, request: &Reserve) -> Answer<v1::Reservation> {
        self.stub.clone().reserve(convert::reserve_request(key, request)).await
    }

    async fn confirm(&self, key: ReservationKey, token: FencingToken, late: Late) -> Answer<v1::Reservation> {
        let late = convert::late_message(late).into();
        self.stub.clone().confirm(v1::ConfirmRequest { key: key.into(), fencing_token: token.0, late }).await
    }

    async fn release(&self, key: ReservationKey, token: Option<FencingToken>) -> Answer<v1::Reservation> {
        let fencing_token = token.map(|token| token.0);
        self.stub.clone().release(v1::ReleaseRequest { key: key.into(), fencing_token }).await
    }

    async fn extend(&self, key: ReservationKey, token: FencingToken, ttl: Duration) -> Answer<v1::Reservation> {
        let ttl_millis = convert::millis(ttl);
        self.stub.clone().extend(v1::ExtendRequest { key: key.into(), fencing_token: token.0, ttl_millis }).await
    }

    async fn give_back(&self, key: ReservationKey, token: FencingToken) -> Answer<v1::Reservation> {
        self.stub.clone().r#return(v1::ReturnRequest { key: key.into(), fencing_token: token.0 }).await
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[async_trait]
impl Reservations for RemoteReservations {
    async fn perform(&self, Operation { key, action }: Operation) -> Result<Reservation, ReservationsError> {
        let (operation, answer) = match action {
            Action::Reserve(request) => ("reserve", self.reserve(key, &request).await),
            Action::Confirm { token, late } => ("confirm", self.confirm(key, token, late).await),
            Action::Release { token } => ("release", self.release(key, token).await),
            Action::Extend { token, ttl } => ("extend", self.extend(key, token, ttl).await),
            Action::GiveBack { token } => ("give back", self.give_back(key, token).await),
        };
        let message = answer.map_err(|status| errors::error(operation, status))?.into_inner();
        convert::reservation(message).map_err(|error| ReservationsError::unavailable(operation, error))
    }

    async fn find(&self, key: &ReservationKey) -> Result<Option<Reservation>, ReservationsError> {
        const OPERATION: &str = "find a reservation";
        let answer = self.stub.clone().get(v1::GetRequest { key: key.to_string() }).await;
        let found = found(OPERATION, answer)?.map(convert::reservation).transpose();
        found.map_err(|error| ReservationsError::unavailable(OPERATION, error))
    }

    async fn set_capacity(&self, resource: &ResourceName, capacity: u64) -> Result<Resource, ReservationsError> {
        const OPERATION: &str = "set a capacity";
        let request = v1::SetCapacityRequest { resource: resource.to_string(), capacity };
        let answer = self.stub.clone().set_capacity(request).await;
        let message = answer.map_err(|status| errors::error(OPERATION, status))?.into_inner();
        convert::resource(message).map_err(|error| ReservationsError::unavailable(OPERATION, error))
    }

    async fn resource(&self, name: &ResourceName) -> Result<Option<Resource>, ReservationsError> {
        const OPERATION: &str = "find a resource";
        let answer = self.stub.clone().get_resource(v1::GetResourceRequest { resource: name.to_string() }).await;
        let found = found(OPERATION, answer)?.map(convert::resource).transpose();
        found.map_err(|error| ReservationsError::unavailable(OPERATION, error))
    }
}

/// The message, or `None` where the reservations have no such thing. Another `NOT_FOUND`, of a proxy, is an error.
fn found<T>(operation: &'static str, answer: Answer<T>) -> Result<Option<T>, ReservationsError> {
    let status = match answer {
        Ok(response) => return Ok(Some(response.into_inner())),
        Err(status) => status,
    };
    let is_not_found = status.code() == Code::NotFound;
    match errors::error(operation, status) {
        ReservationsError::Refused(refusal) if is_not_found && refusal.reason() == Reason::NotFound => Ok(None),
        error => Err(error),
    }
}
