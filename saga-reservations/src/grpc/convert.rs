//! Messages and the book's values.

use std::time::Duration;

use saga_core::store::Timestamp;

use super::v1;
use crate::book::{
    FencingToken, InvalidName, Late, Line, Reservation, ReservationKey, Reserve, Resource, ResourceName, State,
};

impl From<Reservation> for v1::Reservation {
    fn from(reservation: Reservation) -> Self {
        let lines = reservation.lines.into_iter();
        Self {
            key: reservation.key.into(),
            lines: lines.map(|line| v1::Line { resource: line.resource.into(), quantity: line.quantity }).collect(),
            unique: reservation.is_unique,
            state: v1::State::from(reservation.state).into(),
            fencing_token: reservation.token.0,
            first_fencing_token: reservation.first_token.0,
            expires_at_micros: reservation.expires_at.0,
            changed_at_micros: reservation.changed_at.0,
        }
    }
}

impl From<State> for v1::State {
    fn from(state: State) -> Self {
        match state {
            State::Held => Self::Held,
            State::Confirmed => Self::Confirmed,
            State::Released => Self::Released,
            State::Expired => Self::Expired,
            State::Returned => Self::Returned,
        }
    }
}

impl From<Resource> for v1::Resource {
    fn from(resource: Resource) -> Self {
        Self {
            name: resource.name.into(),
            capacity: resource.capacity,
            confirmed: resource.confirmed,
            held: resource.held,
            last_fencing_token: resource.last_token.0,
            unique: resource.is_unique,
        }
    }
}

/// An answer that this version of the client cannot read.
#[derive(Debug, thiserror::Error)]
#[error("the server's answer cannot be read: {0}; use a client of the server's version")]
pub(super) struct Unreadable(String);

impl From<InvalidName> for Unreadable {
    fn from(error: InvalidName) -> Self {
        Self(error.to_string())
    }
}

pub(super) fn reservation(message: v1::Reservation) -> Result<Reservation, Unreadable> {
    let state = match message.state() {
        v1::State::Held => State::Held,
        v1::State::Confirmed => State::Confirmed,
        v1::State::Released => State::Released,
        v1::State::Expired => State::Expired,
        v1::State::Returned => State::Returned,
        v1::State::Unspecified => return Err(Unreadable(format!("state {} is unknown", message.state))),
    };
    let line = |line: v1::Line| Ok(Line { resource: ResourceName::new(line.resource)?, quantity: line.quantity });
    Ok(Reservation {
        key: ReservationKey::new(message.key)?,
        lines: message.lines.into_iter().map(line).collect::<Result<_, InvalidName>>()?,
        is_unique: message.unique,
        state,
        token: FencingToken(message.fencing_token),
        first_token: FencingToken(message.first_fencing_token),
        expires_at: Timestamp(message.expires_at_micros),
        changed_at: Timestamp(message.changed_at_micros),
    })
}

pub(super) fn resource(message: v1::Resource) -> Result<Resource, Unreadable> {
    Ok(Resource {
        name: ResourceName::new(message.name)?,
        capacity: message.capacity,
        confirmed: message.confirmed,
        held: message.held,
        last_token: FencingToken(message.last_fencing_token),
        is_unique: message.unique,
    })
}

/// A request to reserve, as the client sends it.
pub(super) fn reserve_request(key: ReservationKey, request: &Reserve) -> v1::ReserveRequest {
    let lines = request.given_lines().iter();
    v1::ReserveRequest {
        key: key.into(),
        lines: lines.map(|(resource, quantity)| v1::Line { resource: resource.clone(), quantity: *quantity }).collect(),
        ttl_millis: millis(request.time_to_live()),
        unique: request.is_unique(),
    }
}

pub(super) fn late_message(late: Late) -> v1::Late {
    match late {
        Late::Refuse => v1::Late::Refuse,
        Late::IfFree => v1::Late::IfFree,
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
