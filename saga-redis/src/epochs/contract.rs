//! What keeps the epochs.

use std::error::Error;

use async_trait::async_trait;

/// Durable epochs, one for each slot of the lock service. Redis may lose what it knows; the epochs make its tokens grow all
/// the same. They are read when a process first uses a slot, and raised when Redis lost its data or another server took over.
///
/// With the feature `sqlite` it is implemented by `saga_sqlite::SqliteStore`, with the feature `postgres` by
/// `saga_postgres::PostgresStore`: both keep the epochs in the table `saga_redis_epochs`, which they create.
///
/// # Contract
/// - All processes that use the same locks use the same epochs.
/// - No two raises of a slot return the same epoch, in no two processes.
/// - An epoch that was returned is durable.
///
/// # Cancel safety
/// A dropped raise takes effect or does not.
#[async_trait]
pub trait Epochs: Send + Sync + 'static {
    /// Raises the epoch of a slot above its last one and above `above`, and returns it.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn raise(&self, slot: u16, above: u64) -> Result<u64, Box<dyn Error + Send + Sync>>;

    /// The epoch that the last raise of a slot returned, or 0.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn current(&self, slot: u16) -> Result<u64, Box<dyn Error + Send + Sync>>;
}
