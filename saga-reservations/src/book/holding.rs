//! The units of a reservation move between the accounts of their resources.

use super::reservation::{FencingToken, Line};
use super::resource::Resource;

/// From where to where the units of a line move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Movement {
    FreeToHeld,
    FreeToConfirmed,
    HeldToConfirmed,
    HeldToFree,
    ConfirmedToFree,
}

impl Movement {
    /// Whether it needs free units.
    pub(super) fn takes(self) -> bool {
        matches!(self, Self::FreeToHeld | Self::FreeToConfirmed)
    }

    /// Books it. The caller has seen that there are enough free units.
    pub(super) fn book(self, resource: &mut Resource, line: &Line) {
        let quantity = u64::from(line.quantity);
        match self {
            Self::FreeToHeld => resource.held += quantity,
            Self::FreeToConfirmed => resource.confirmed += quantity,
            Self::HeldToConfirmed => {
                resource.held -= quantity;
                resource.confirmed += quantity;
            }
            Self::HeldToFree => resource.held -= quantity,
            Self::ConfirmedToFree => resource.confirmed -= quantity,
        }
    }
}

/// A token above all that these resources have given out.
pub(super) fn next_token<'a>(resources: impl Iterator<Item = &'a Resource>) -> FencingToken {
    let highest = resources.map(|resource| resource.last_token.0).max().unwrap_or(0);
    FencingToken(highest + 1)
}
