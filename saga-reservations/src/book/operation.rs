use std::time::Duration;

use super::name::ReservationKey;
use super::reservation::FencingToken;
use super::reserve::Reserve;

/// What is to be done with the reservation of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Which reservation.
    pub key: ReservationKey,
    /// What to do.
    pub action: Action,
}

/// What can be done with a reservation. Each one may be repeated: it has one effect, and the same answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Holds the units. The key of the operation counts, not that of the request.
    Reserve(Reserve),
    /// Makes a hold final.
    Confirm {
        /// The token of the hold.
        token: FencingToken,
        /// What to do if the hold has expired.
        late: Late,
    },
    /// Gives a hold up.
    Release {
        /// The token of the hold. A client that never got an answer has none; its release also bars a request that is still
        /// on its way.
        token: Option<FencingToken>,
    },
    /// Lets a hold last for `ttl` from now, if that is longer than it lasts already. The token stays.
    Extend {
        /// The token of the hold.
        token: FencingToken,
        /// The new time to live.
        ttl: Duration,
    },
    /// Gives the units of a confirmed reservation back.
    GiveBack {
        /// The token of the confirmed reservation.
        token: FencingToken,
    },
}

impl Operation {
    /// An operation.
    pub fn new(key: ReservationKey, action: Action) -> Self {
        Self { key, action }
    }
}

/// What a confirmation does whose hold has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Late {
    /// It is refused with `EXPIRED`.
    #[default]
    Refuse,
    /// It takes the units again, if they are free, under a new token.
    IfFree,
}
