//! Requests that take effect once, by the header `Idempotency-Key`.

mod accepted;
mod answer;
mod arguments;
mod body;
mod claim_first;
mod fingerprint;
mod handler;
mod in_progress;
mod incoming;
mod kept;
mod key;
mod settings;
mod transaction;

pub use self::accepted::SagaAccepted;
pub use self::arguments::Arguments;
pub use self::claim_first::{ClaimFirst, ClaimFirstService, ClaimedKey};
pub use self::handler::{IdempotentHandler, TxHandler};
pub use self::settings::{Idempotency, NewIdempotency};
pub use self::transaction::Tx;
