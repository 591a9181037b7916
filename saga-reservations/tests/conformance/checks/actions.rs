//! What the checks ask for.

use std::time::Duration;

use saga_reservations::{Action, FencingToken, Late, Reserve};

/// Some seats for a minute.
pub(super) fn seats(quantity: u32) -> Reserve {
    Reserve::of("seat", quantity).ttl_secs(60)
}

pub(super) fn confirm(token: FencingToken) -> Action {
    Action::Confirm { token, late: Late::Refuse }
}

pub(super) fn confirm_late(token: FencingToken) -> Action {
    Action::Confirm { token, late: Late::IfFree }
}

pub(super) fn release(token: FencingToken) -> Action {
    Action::Release { token: Some(token) }
}

pub(super) fn extend(token: FencingToken, seconds: u64) -> Action {
    Action::Extend { token, ttl: Duration::from_secs(seconds) }
}

pub(super) fn give_back(token: FencingToken) -> Action {
    Action::GiveBack { token }
}
