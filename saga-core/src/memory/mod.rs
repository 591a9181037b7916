//! A complete store and a complete transport in memory: the reference for the suites of `saga-testkit`, and all that a
//! unit test of a saga needs.
//!
//! [`MemoryStore`] shows the behaviour of a database at READ COMMITTED: a statement reads committed rows and the writes
//! of its own transaction; a claim skips a row that another open transaction holds, and a write waits for it; the
//! second of two compare-and-sets misses.

mod clock;
mod commit_hook;
mod conn;
mod shared;
mod statements;
mod store;
mod tables;
mod transport;

#[doc(hidden)]
pub use self::commit_hook::{CommitFate, CommitHook, CommitPoint, PendingCommit};
pub use self::conn::{MemoryConflict, MemoryConn};
pub use self::store::start_in::MemoryTransaction;
pub use self::store::store::MemoryStore;
pub use self::tables::table::MemoryTable;
pub use self::transport::transport::MemoryTransport;
