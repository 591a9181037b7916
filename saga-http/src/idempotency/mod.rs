//! Requests that take effect once, by the header `Idempotency-Key`.

mod accepted;
mod answer;
mod arguments;
mod body;
mod canonical_json;
mod claim;
mod claim_first;
mod fingerprint;
mod handler;
mod idempotency;
mod in_progress;
mod incoming;
mod kept;
mod key;
mod partial_body;
mod patience;
mod settings;
mod soon;
mod transaction;
mod ttl;
mod tx_handler;

pub use self::accepted::SagaAccepted;
pub use self::arguments::Arguments;
pub use self::claim_first::{ClaimFirst, ClaimFirstService, ClaimedKey};
pub use self::handler::IdempotentHandler;
pub use self::idempotency::{Idempotency, NewIdempotency};
pub use self::key::idempotency_key;
pub use self::transaction::Tx;
pub use self::ttl::TtlTooLong;
pub use self::tx_handler::TxHandler;
