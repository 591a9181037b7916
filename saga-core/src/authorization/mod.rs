//! Who may speak: which services may send messages to this one, and what each of them may say.
//!
//! Without an [`AccessPolicy`] everybody with access to the transport is trusted: a forged reply completes another
//! service's saga. With one, every message is checked before it is stored or handled:
//!
//! - **Who sent it** is proven by the user that the transport has checked
//!   ([`Delivery::user`](crate::transport::Delivery::user)), by a signature ([`SigningKey`]), or by both.
//! - **Who it says it is from** must be a service that this user or key may speak for.
//! - **What it asks for** must be something that this service may ask for, answer or publish.
//!
//! A message that fails a check becomes a dead letter with the reason
//! [`NotAuthorized`](crate::store::DeadLetterReason::NotAuthorized). Its sender is told nothing.
//!
//! `docs/security.md` has the threat model, and says over what a signature is made.

mod policy;
mod signature;

pub use self::policy::AccessPolicy;
pub use self::signature::{SigningKey, SigningKeyError};
