//! What tells one message from another at one receiver.

use sha2::{Digest, Sha256};

use crate::store::MessageId;

/// The same for the same message from the same source.
pub(crate) fn fingerprint_of(source: &str, message: MessageId) -> [u8; 32] {
    Sha256::new().chain_update(source.as_bytes()).chain_update(message.0.as_bytes()).finalize().into()
}
