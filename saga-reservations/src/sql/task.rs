//! What a transaction does with the reservation of a key.

use saga_core::store::Timestamp;

use crate::book::{Action, Book, Line, Operation, Refusal, Reservation, ReservationKey};

/// What a transaction does with the reservation of a key.
#[derive(Debug, Clone)]
pub(super) enum Task {
    /// What a client asked for.
    Operation(Operation),
    /// What a client asked for, if Redis has still this epoch. It has noted the key in it.
    #[cfg(feature = "redis")]
    OperationInEpoch { operation: Operation, epoch: u64 },
    /// The confirmation of a hold that is in Redis.
    #[cfg(feature = "redis")]
    ConfirmHold {
        hold: Reservation,
        /// The epoch in which Redis had the hold. In another one it is not confirmed.
        epoch: u64,
    },
}

impl Task {
    pub(super) fn key(&self) -> &ReservationKey {
        match self {
            Self::Operation(operation) => &operation.key,
            #[cfg(feature = "redis")]
            Self::OperationInEpoch { operation, .. } => &operation.key,
            #[cfg(feature = "redis")]
            Self::ConfirmHold { hold, .. } => &hold.key,
        }
    }

    /// The lines, if it brings them. Those of a reservation that there is never change, so they are read without a lock.
    pub(super) fn own_lines(&self) -> Option<Vec<Line>> {
        match self {
            // The book refuses a request that cannot be served.
            Self::Operation(Operation { action: Action::Reserve(request), .. }) => {
                Some(request.check().unwrap_or_default())
            }
            Self::Operation(_) => None,
            #[cfg(feature = "redis")]
            Self::OperationInEpoch { .. } => None,
            #[cfg(feature = "redis")]
            Self::ConfirmHold { hold, .. } => Some(hold.lines.clone()),
        }
    }

    #[cfg(feature = "redis")]
    pub(super) fn epoch(&self) -> Option<u64> {
        match self {
            Self::Operation(_) => None,
            Self::OperationInEpoch { epoch, .. } | Self::ConfirmHold { epoch, .. } => Some(*epoch),
        }
    }

    /// Whether the reservation was made after its lines had been looked for, so that its resources are missing.
    pub(super) fn is_raced(&self, book: &Book) -> bool {
        self.own_lines().is_none() && !book.has_resources_of(self.key())
    }

    pub(super) fn carry_out(&self, book: &mut Book, now: Timestamp) -> Result<Reservation, Refusal> {
        match self {
            Self::Operation(operation) => book.perform(operation, now),
            #[cfg(feature = "redis")]
            Self::OperationInEpoch { operation, .. } => book.perform(operation, now),
            #[cfg(feature = "redis")]
            Self::ConfirmHold { hold, .. } => book.confirm_hold(hold, now),
        }
    }
}
