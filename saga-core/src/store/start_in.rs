//! Starting sagas and publishing events in the application's own transaction.

use async_trait::async_trait;

use super::{NewMessage, NewSaga, Started, Store, StoreError};

/// A store whose connection an application can hold in a transaction of its own.
///
/// # Contract
/// - `S-IN-1` [`start_in`](StartIn::start_in) writes on the given connection, in the transaction that is open there: the saga exists if and only if that commits.
/// - `S-IN-2` It never raises an SQL error for a taken key, because that would end the caller's transaction.
/// - `S-IN-3` A connection without a transaction is refused with the kind `Misuse`, and nothing is written.
/// - `S-IN-4` [`publish_in`](StartIn::publish_in) writes on the given connection, in the transaction that is open there: the message is in the outbox if and only if that commits.
/// - `S-IN-6` The ids that [`start_in`](StartIn::start_in) gives are consecutive: the saga's, then those of its commands, in their order.
/// - `S-IN-5` The first message of an ordering key gets position 1, each further one the next. A transaction that publishes under a key waits until an earlier transaction that published under it has ended, so that the positions have the order of the commits (G9).
#[async_trait]
pub trait StartIn: Store {
    /// Starts a saga inside the caller's transaction. The store gives the saga and its commands their ids, which follow
    /// each other (`S-IN-6`).
    async fn start_in(&self, conn: &mut Self::Conn, saga: NewSaga) -> Result<Started, StoreError>;

    /// Puts a message into the outbox inside the caller's transaction. The store gives it its position, from a counter
    /// of its ordering key. Only this call counts for such a key: messages of sagas have keys of their own.
    async fn publish_in(&self, conn: &mut Self::Conn, message: NewMessage) -> Result<(), StoreError>;
}
