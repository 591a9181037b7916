//! The contract of a store.

/// Where sagas are kept, and whose transactions the steps run in.
pub trait Store: Send + Sync + 'static {
    /// The connection that a transactional step takes as `&mut C`.
    type Conn: Send + 'static;
}
