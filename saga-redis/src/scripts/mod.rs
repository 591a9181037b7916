//! The scripts that run in Redis. Each uses the keys of one slot.

mod call;
mod texts;

pub(crate) use self::call::Call;
pub(crate) use self::texts::{ACQUIRE, BEGIN_EPOCH, RELEASE, RENEW, WITHDRAW};
