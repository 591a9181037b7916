//! gRPC: the service, and the client of a server. `proto/saga/reservations/v1/reservations.proto` specifies it.

mod convert;
mod errors;
mod remote;
#[cfg(feature = "server")]
mod requests;
#[cfg(feature = "server")]
mod service;
#[cfg(feature = "server")]
mod statuses;
pub mod v1;

pub use self::remote::RemoteReservations;
#[cfg(feature = "server")]
pub use self::service::ReservationsService;
