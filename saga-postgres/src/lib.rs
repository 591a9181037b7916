//! The PostgreSQL store of the saga runtime: many processes on one database, one statement to claim a batch of steps and
//! one to record it.
//!
//! - **Many processes work on a database at once**, each with a pool of its own. Work is leased by the database's clock;
//!   whatever a dead process held goes on elsewhere.
//! - **A batch of steps costs five round trips** besides those of its steps: begin, claim, savepoint, record, commit. Tables
//!   that fill and empty all the time keep their index plans, whatever their statistics say.
//! - **A schema of its own**, `saga` if nothing else is said, with a table of its own for its migrations. Several stores
//!   live in one database under several schemas.
//! - **Your tables live beside it**: steps take a `&mut sqlx::PgConnection`.
//! - **Polling alone is right.** Processes tell each other by `NOTIFY` what there is to do, on a connection of their own and
//!   outside of all transactions. Nothing depends on it, and it can be
//!   [switched off](PostgresOptions::without_hints).
//!
//! # What a step may do with its connection
//! A transactional step runs in a transaction that it may share with others, behind a savepoint of its own, at the
//! isolation level `READ COMMITTED`.
//! - It reads and writes as it likes. A nested transaction is a savepoint: `conn.begin()`.
//! - It does not end the transaction. `COMMIT` is refused by the server, and what was tried is reported. For the same
//!   reason `SET CONSTRAINTS ALL IMMEDIATE` is refused; name the constraints. `ROLLBACK` no server refuses: it is found out
//!   before anything is recorded, and takes all of the batch with it. What the step tries to write behind it is refused, as
//!   the session may only read outside of step transactions; that holds on the store's own connections, not on a pool of
//!   the application's and not behind PgBouncer, where such writes stay although the step is reported.
//! - It leaves the transaction as it found it. A role or `READ ONLY` that it sets, it sets back before it returns, since the
//!   store records in the same transaction; a transaction that it nests, it ends. Otherwise its attempt has failed.
//! - What it sets for the transaction (`SET LOCAL`) holds for the rest of the batch, and what it sets for the session for
//!   ever: a step that sets anything is declared `group = false`. So is one that makes a temporary table, even
//!   `ON COMMIT DROP`, since the next step of the batch finds it there; one that takes `pg_advisory_xact_lock` or
//!   `LOCK TABLE`, since all of the batch holds it until the commit; and above all one with
//!   `SET LOCAL synchronous_commit`, since that takes the durability of every commit of the batch, of starts that are
//!   answered too. In a batch `now()` is one moment for all steps.
//! - A step that fails beside others is tried once more alone before its last attempt counts, so that one that is right by
//!   itself is slow, and not failed, where `group = false` was forgotten.
//! - It may run several times and commits once, so it touches nothing but its connection.
//! - In a batch it waits for a lock of somebody else only for [`batch_lock_timeout`](PostgresOptions::batch_lock_timeout);
//!   then the batch runs again in halves.
//!
//! # Change data capture
//! With [`Relay::Cdc`] the runtime sends nothing itself: `docs/cdc.md` in the repository has the configuration of a
//! connector, and says what is given up.
//!
//! # PgBouncer
//! In its transaction mode, set [`pgbouncer`](PostgresOptions::pgbouncer).

mod aborted;
mod arrays;
mod changes;
mod clock;
mod connection;
mod connection_cache;
mod dead_letters;
mod definition_numbers;
mod definitions;
mod error;
#[doc(hidden)]
pub mod fault_injection;
mod grant;
mod handlers;
mod hint_connection;
mod hints;
mod id_counter;
mod ids;
mod inbox;
mod lock_wait;
mod members;
mod migrate_saga;
mod options;
mod outbox;
mod pool;
mod pooler;
mod records;
mod rows;
mod sagas;
mod schema;
mod server;
mod shared;
mod shares;
mod start_in;
mod statement;
mod statement_cache;
mod statistics;
mod store;
mod timeline;
mod transaction;
mod work;

pub use self::options::{PostgresOptions, Relay};
pub use self::statistics::Statistics;
pub use self::store::PostgresStore;
