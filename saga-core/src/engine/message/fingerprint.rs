//! The fingerprint of a dead letter.

use sha2::{Digest, Sha256};

use crate::store::MessageId;

/// The same for each delivery of a message from the same source.
pub(crate) fn fingerprint_of(source: &str, message: MessageId) -> [u8; 32] {
    Sha256::new().chain_update(source.as_bytes()).chain_update(message.0.as_bytes()).finalize().into()
}
