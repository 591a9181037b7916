//! A complete store and a complete transport in memory: the reference that the suites of `saga-testkit` were written
//! against, and all that a unit test of a saga needs.
//!
//! [`MemoryStore`] behaves as a database at READ COMMITTED does, where it can be seen: a statement reads what is
//! committed and what its own transaction wrote, a row that another open transaction holds is skipped by a claim and
//! waited for by a write, and whoever comes second with a compare-and-set misses.

mod apply;
mod clock;
mod conn;
mod data;
mod definitions;
mod hashing;
mod hints;
mod hook;
mod inbox;
mod letters;
mod locks;
mod members;
mod outbox;
mod queue;
mod records;
mod sagas;
mod start_in;
mod store;
mod transact;
mod transport;
mod work;

pub use self::conn::{MemoryConflict, MemoryConn, MemoryTable};
#[doc(hidden)]
pub use self::hook::{CommitFate, CommitHook, CommitPoint, PendingCommit};
pub use self::start_in::MemoryTransaction;
pub use self::store::MemoryStore;
pub use self::transport::{GivenUp, MemoryTransport, REJECTIONS_MAX};
