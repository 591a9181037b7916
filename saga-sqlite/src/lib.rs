#![doc = include_str!("../README.md")]
//!
//! # How it works
//! - **One process works on a file.** It holds a lock on `<file>.lock` as long as it lives. A second process logs a
//!   warning and waits for the lock, for 30 seconds by default ([`wait_for_lock`](SqliteOptions::wait_for_lock)), and
//!   then gets an error that names the first one. Or it opens the file [read only](SqliteStore::read_only). The leases of
//!   a dead process are free at once.
//! - **One thread writes.** It takes the waiting calls, runs them in one transaction, commits, and answers all of them.
//!   With many sagas in flight, one flush of the disk carries many steps. Statements are cached, and no call moves
//!   between threads.
//! - **Durable by default**: the file is in WAL mode with `synchronous=FULL`, see [`Synchronous`].
//! - **Your tables can live in the same file**: steps take a `&mut rusqlite::Connection`, and [`SqliteStore::write`]
//!   and [`SqliteStore::read`] are for the rest of the application. The names of the runtime's own tables begin with
//!   `saga_`.
//!
//! # What a step may do with its connection
//! A transactional step runs on the writer thread, inside the tokio runtime in which the engine was started, in a
//! transaction that it shares with other steps, behind a savepoint of its own.
//! - It may read and write. A nested transaction is a savepoint: `conn.savepoint()`.
//! - It must not end the transaction: `COMMIT` and `ROLLBACK` are refused, and the attempt is reported.
//! - It must not change the connection: no `ATTACH`, no `PRAGMA` that sets a value, no hooks, no timeouts.
//! - It must not wait for anything slow, because no other call can write meanwhile. A statement is interrupted at the
//!   step's time limit, and a future that is still pending then is dropped; code that blocks the thread cannot be
//!   stopped.
//! - It must not spawn a task that needs to see its writes: the task outlives the transaction and has no connection.
//! - It may run several times and commits once, so it must have no effect outside its connection.
//! - SQLite's time functions (`unixepoch()`) return the time of the statement.

mod aborted;
mod clock;
mod error;
mod fault_injection;
mod file;
mod ids;
mod live_members;
mod options;
mod shared;
mod statements;
mod statistics;
mod store;
mod test_clock;
mod writer;

/// The version of rusqlite that this store uses. The connection in a step's signature must be of this version, and a
/// program that takes it from here cannot have another one. To switch on further features of rusqlite, depend on the
/// same version of it.
pub use rusqlite;

pub use self::options::{SqliteOptions, Synchronous};
pub use self::statistics::Statistics;
pub use self::store::store::SqliteStore;

saga_core::precompile_runtime!(SqliteStore);
