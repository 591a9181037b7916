//! A complete store and a complete transport in memory: the reference for the suites of `saga-testkit`, and all that a
//! unit test of a saga needs.
//!
//! [`MemoryStore`] shows the behaviour of a database at READ COMMITTED: a statement reads committed rows and the writes
//! of its own transaction; a claim skips a row that another open transaction holds, and a write waits for it; the
//! second of two compare-and-sets misses.

mod aging;
mod changes;
mod claims;
mod clock;
mod commit_hook;
mod conn;
mod data;
mod dead_letter_table;
mod dead_letters;
mod definitions;
mod expiry;
mod hashing;
mod hints;
mod idempotency;
mod inbox;
mod live_members;
mod lock_table;
mod locks;
mod members;
mod migrate_saga;
mod outbox;
mod outbox_table;
mod purge;
mod records;
mod request_table;
mod sagas;
mod semantic_locks;
mod shared;
mod start_in;
mod store;
mod table;
mod taken_locks;
mod transaction;
mod transport;
mod transport_queue;
mod unlock;
mod work;
mod work_row;

#[doc(hidden)]
pub use self::commit_hook::{CommitFate, CommitHook, CommitPoint, PendingCommit};
pub use self::conn::{MemoryConflict, MemoryConn};
pub use self::start_in::MemoryTransaction;
pub use self::store::MemoryStore;
pub use self::table::MemoryTable;
pub use self::transport::{DeadLettered, MemoryTransport, REJECTIONS_MAX};
