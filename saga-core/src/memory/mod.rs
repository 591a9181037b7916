//! A complete store and a complete transport in memory: the reference that the suites of `saga-testkit` were written
//! against, and all that a unit test of a saga needs.
//!
//! [`MemoryStore`] behaves as a database at READ COMMITTED does, where it can be seen: a statement reads what is
//! committed and what its own transaction wrote, a row that another open transaction holds is skipped by a claim and
//! waited for by a write, and whoever comes second with a compare-and-set misses.

mod changes;
mod claims;
mod clock;
mod commit_hook;
mod conn;
mod data;
mod dead_letter_table;
mod dead_letters;
mod definitions;
mod hashing;
mod hints;
mod inbox;
mod live_members;
mod locks;
mod members;
mod migrate_saga;
mod outbox;
mod outbox_table;
mod records;
mod sagas;
mod shared;
mod start_in;
mod store;
mod table;
mod transaction;
mod transport;
mod transport_queue;
mod work;
mod work_row;

#[doc(hidden)]
pub use self::commit_hook::{CommitFate, CommitHook, CommitPoint, PendingCommit};
pub use self::conn::{MemoryConflict, MemoryConn};
pub use self::start_in::MemoryTransaction;
pub use self::store::MemoryStore;
pub use self::table::MemoryTable;
pub use self::transport::{DeadLettered, MemoryTransport, REJECTIONS_MAX};
