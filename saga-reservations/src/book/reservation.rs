use std::fmt;
use std::time::Duration;

use saga_core::store::Timestamp;
use serde::{Deserialize, Serialize};

use super::name::{ReservationKey, ResourceName};

/// A reservation as the store has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reservation {
    /// Its key.
    pub key: ReservationKey,
    /// What is reserved, by the names of the resources.
    pub lines: Vec<Line>,
    /// Whether it is a unique intent: its resource exists once and was made by its first use.
    pub is_unique: bool,
    /// What became of it.
    pub state: State,
    /// Its number. It is higher than that of every earlier reservation of the same resources.
    pub token: FencingToken,
    /// The number under which it was held first. It differs from `token` after a late confirmation.
    pub first_token: FencingToken,
    /// When the hold ends, in microseconds since 1970, by the store's clock.
    #[serde(with = "micros")]
    pub expires_at: Timestamp,
    /// When its state changed last, in microseconds since 1970, by the store's clock.
    #[serde(with = "micros")]
    pub changed_at: Timestamp,
}

impl Reservation {
    /// A hold that was just taken.
    pub(crate) fn held(
        key: ReservationKey,
        (lines, is_unique): (Vec<Line>, bool),
        token: FencingToken,
        (now, ttl): (Timestamp, Duration),
    ) -> Self {
        let (state, first_token, expires_at, changed_at) = (State::Held, token, plus(now, ttl), now);
        Self { key, lines, is_unique, state, token, first_token, expires_at, changed_at }
    }

    /// What a release leaves where there is no reservation.
    pub(crate) fn tombstone(key: ReservationKey, now: Timestamp) -> Self {
        Self {
            key,
            lines: Vec::new(),
            is_unique: false,
            state: State::Released,
            token: FencingToken(0),
            first_token: FencingToken(0),
            expires_at: now,
            changed_at: now,
        }
    }

    /// Whether the hold is over by this time. It may not have been written down yet.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.state == State::Held && self.expires_at <= now
    }

    /// As a client sees it at this time: an overdue hold is expired, whether it has been swept or not.
    #[must_use]
    pub fn seen_at(mut self, now: Timestamp) -> Self {
        if self.is_overdue(now) {
            self.state = State::Expired;
        }
        self
    }

    /// Whether the reservation has, or had, this token.
    pub(super) fn knows(&self, token: FencingToken) -> bool {
        token == self.token || token == self.first_token
    }
}

/// A quantity of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Line {
    /// The resource.
    pub resource: ResourceName,
    /// How many units.
    pub quantity: u32,
}

/// What became of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// The units are kept for it until it expires.
    Held,
    /// The units are its own until they are given back.
    Confirmed,
    /// The client gave the hold up. A release without a reservation leaves one without lines, so that a late request
    /// for the same key takes nothing.
    Released,
    /// The hold ran out.
    Expired,
    /// The units of a confirmed reservation were given back.
    Returned,
}

impl State {
    /// Its name, as in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Confirmed => "confirmed",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Returned => "returned",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A number that grows with each reservation of a resource. A system that the holder writes to can refuse a number lower
/// than the highest it has seen, and so a holder that lost its hold without noticing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FencingToken(pub u64);

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A time as its microseconds.
mod micros {
    use saga_core::store::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references to fields")]
    pub(super) fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(time.0)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(deserializer).map(Timestamp)
    }
}

pub(super) fn plus(now: Timestamp, ttl: Duration) -> Timestamp {
    Timestamp(now.0.saturating_add(i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX)))
}
