#![doc = include_str!("../README.md")]
//!
//! # How it works
//! - **Many processes work on one database at once**, each with a pool of its own. Work is leased by the database's
//!   clock; another process continues the work of a dead one.
//! - **A batch of steps costs five round trips** besides those of its steps: begin, claim, savepoint, record, commit.
//!   Plans use the indexes even while the statistics say that a table is empty.
//! - **A schema of its own**, `saga` by default, with its own table of migrations. Several stores can live in one
//!   database in several schemas.
//! - **Your tables can live in the same database**: steps take a `&mut sqlx::PgConnection`.
//! - **Polling alone is enough.** Processes also notify each other of new work by `NOTIFY`, on a separate connection
//!   and outside of all transactions. Nothing depends on it, and you can [switch it
//!   off](PostgresOptions::without_hints).
//!
//! # What a step may do with its connection
//! A transactional step runs in a transaction that it may share with other steps, behind a savepoint of its own, at the
//! isolation level `READ COMMITTED`.
//! - It may read and write. A nested transaction is a savepoint: `conn.begin()`.
//! - It must not end the transaction. The server refuses `COMMIT`, and the attempt is reported. For the same reason it
//!   refuses `SET CONSTRAINTS ALL IMMEDIATE`; name the constraints. The server cannot refuse `ROLLBACK`: the store
//!   detects it before it records anything, and the whole batch is rolled back. Later writes of such a step are
//!   refused, because the session is read-only outside of step transactions. This holds on the store's own connections
//!   only. On a pool of the application and behind PgBouncer, such writes are kept although the step is reported.
//! - It must leave the transaction as it found it. A step that sets a role or `READ ONLY` must reset it before it
//!   returns, because the store records in the same transaction; a nested transaction must be ended. Otherwise the
//!   attempt fails.
//! - It needs `group = false` if its statements affect the other steps of the batch:
//!   - `SET LOCAL` holds for the rest of the batch, and `SET` for the session. `SET LOCAL synchronous_commit` removes
//!     the durability of every commit of the batch, also of starts that are already answered.
//!   - The next step of the batch finds a temporary table, even with `ON COMMIT DROP`.
//!   - The whole batch holds `pg_advisory_xact_lock` and `LOCK TABLE` until the commit.
//! - In a batch, `now()` is the same time for all steps.
//! - A step that fails in a batch is retried alone before its last attempt counts. So a correct step that lacks
//!   `group = false` is slow, but does not fail.
//! - It may run several times and commits once, so it must have no effect outside its connection.
//! - In a batch it waits for a lock of another transaction only for
//!   [`batch_lock_timeout`](PostgresOptions::batch_lock_timeout); then the batch runs again in halves.
//!
//! # Change data capture
//! With [`Relay::Cdc`] the runtime sends no messages itself. `docs/cdc.md` in the repository has the configuration of a
//! connector, and says which guarantees change.
//!
//! # PgBouncer
//! Behind PgBouncer in transaction mode, set [`pgbouncer`](PostgresOptions::pgbouncer).

mod clock;
mod connections;
mod error;
#[doc(hidden)]
pub mod fault_injection;
mod options;
mod purging;
mod requests;
mod rows;
mod schema;
mod shared;
mod statistics;
mod step_transaction;
mod store;
mod table_archive;
mod test_clock;

/// The version of sqlx that this store uses. The connection in a step's signature must be of this version, and a program
/// that takes it from here cannot have another one. To switch on further features of sqlx, such as `macros`, depend on
/// the same version of it.
pub use sqlx;

pub use self::options::{PostgresOptions, Relay};
pub use self::statistics::Statistics;
pub use self::store::store::PostgresStore;
pub use self::table_archive::TableArchive;

saga_core::precompile_runtime!(PostgresStore);
