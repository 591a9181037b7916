//! The scripts that run in Redis. Each uses the keys of one slot.

mod call;
mod texts;

pub use self::call::Call;
pub(crate) use self::texts::{ACQUIRE, RELEASE, RENEW, WITHDRAW};
pub use self::texts::{BEGIN_EPOCH, Text};
