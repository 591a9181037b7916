//! What operators and applications ask for while a saga is under way.

pub(super) mod cancel;
pub(super) mod definition_diff;
pub(super) mod lock_lost;
pub(super) mod operator;
pub(super) mod pause;
pub(super) mod restart;
