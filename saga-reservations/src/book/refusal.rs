use std::fmt;

use serde::{Deserialize, Serialize};

use super::name::{InvalidName, ReservationKey, ResourceName};
use super::reservation::{FencingToken, Reservation, State};
use super::reserve::InvalidReserve;
use super::resource::Resource;

/// An operation that was refused. It changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Refusal {
    reason: Reason,
    message: String,
}

/// Why an operation was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum Reason {
    /// There are not enough free units.
    Insufficient,
    /// Another client holds the unique intent.
    Conflict,
    /// The unique intent was confirmed before.
    Duplicate,
    /// The token is not that of the reservation.
    StaleToken,
    /// The hold has expired.
    Expired,
    /// The reservation was released or given back.
    Ended,
    /// The reservation is held where it should be confirmed, or the other way round.
    WrongState,
    /// The key belongs to a request with other lines.
    KeyReused,
    /// There is no such reservation or resource.
    NotFound,
    /// The capacity would be lower than what is taken.
    BelowTaken,
    /// The request cannot be served at all.
    Invalid,
}

impl Reason {
    const ALL: [Self; 11] = [
        Self::Insufficient,
        Self::Conflict,
        Self::Duplicate,
        Self::StaleToken,
        Self::Expired,
        Self::Ended,
        Self::WrongState,
        Self::KeyReused,
        Self::NotFound,
        Self::BelowTaken,
        Self::Invalid,
    ];

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Insufficient => "INSUFFICIENT",
            Self::Conflict => "CONFLICT",
            Self::Duplicate => "DUPLICATE",
            Self::StaleToken => "STALE_TOKEN",
            Self::Expired => "EXPIRED",
            Self::Ended => "ENDED",
            Self::WrongState => "WRONG_STATE",
            Self::KeyReused => "KEY_REUSED",
            Self::NotFound => "NOT_FOUND",
            Self::BelowTaken => "BELOW_TAKEN",
            Self::Invalid => "INVALID",
        }
    }

    /// The reason of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Refusal {
    /// A refusal with this reason and this sentence.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// Why.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    pub(super) fn short_of(resource: &Resource, quantity: u32) -> Self {
        let Resource { name, capacity, .. } = resource;
        if !resource.is_unique {
            let message =
                format!("{quantity} of {name} were asked for, and {} of {capacity} are free", resource.free());
            return Self::new(Reason::Insufficient, message);
        }
        if resource.confirmed > 0 {
            return Self::new(Reason::Duplicate, format!("{name} was confirmed before; it is not done twice"));
        }
        Self::new(Reason::Conflict, format!("{name} is held by another request; try again when it has ended"))
    }

    pub(super) fn not_unique(name: &ResourceName) -> Self {
        let message = format!("{name} was made with a capacity, so it cannot be a unique intent; choose another name");
        Self::new(Reason::Invalid, message)
    }

    pub(super) fn unknown_resource(name: &ResourceName) -> Self {
        Self::new(Reason::NotFound, format!("there is no resource {name}; set its capacity first"))
    }

    pub(super) fn unknown_key(key: &ReservationKey) -> Self {
        let message =
            format!("there is no reservation {key}; it was never made, or ended so long ago that it was pruned");
        Self::new(Reason::NotFound, message)
    }

    pub(super) fn key_reused(key: &ReservationKey) -> Self {
        let message = format!("the key {key} belongs to a reservation of something else; send a new key");
        Self::new(Reason::KeyReused, message)
    }

    pub(super) fn stale(reservation: &Reservation, token: FencingToken) -> Self {
        let Reservation { key, token: current, .. } = reservation;
        let message = format!("token {token} is not that of the reservation {key}, which is {current}");
        Self::new(Reason::StaleToken, message)
    }

    /// The reservation is past, so nothing more can be done with it.
    pub(super) fn ended(reservation: &Reservation) -> Self {
        let Reservation { key, expires_at, .. } = reservation;
        match reservation.state {
            State::Expired => Self::new(
                Reason::Expired,
                format!("the hold {key} ended at {expires_at}; reserve again under a new key"),
            ),
            state => {
                Self::new(Reason::Ended, format!("the reservation {key} was {state}; reserve again under a new key"))
            }
        }
    }

    pub(super) fn wrong_state(reservation: &Reservation, wanted: State) -> Self {
        let Reservation { key, state, .. } = reservation;
        let remedy = match wanted {
            State::Held => "give it back instead",
            _ => "confirm it first, or release it",
        };
        Self::new(Reason::WrongState, format!("the reservation {key} is {state} and not {wanted}; {remedy}"))
    }

    pub(super) fn below_taken(resource: &Resource, capacity: u64) -> Self {
        let Resource { name, confirmed, held, .. } = resource;
        let message = format!(
            "{name} cannot have the capacity {capacity}: {confirmed} are confirmed and {held} are held; \
             wait for holds to end, or have reservations given back"
        );
        Self::new(Reason::BelowTaken, message)
    }
}

impl From<InvalidReserve> for Refusal {
    fn from(error: InvalidReserve) -> Self {
        Self::new(Reason::Invalid, error.to_string())
    }
}

impl From<InvalidName> for Refusal {
    fn from(error: InvalidName) -> Self {
        Self::new(Reason::Invalid, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn each_reason_has_its_own_name() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
        assert_eq!(Reason::parse("OTHER"), None);
    }
}
