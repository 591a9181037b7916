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
//! - What it sets for the transaction (`SET LOCAL`) holds for the rest of the batch, and what it sets for the session for
//!   ever: a step that sets anything is declared `group = false`. In a batch `now()` is one moment for all steps.
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

mod arrays;
mod changes;
mod clock;
mod connection;
mod dead_letters;
mod definitions;
mod doubt;
mod error;
mod grant;
mod handlers;
mod hints;
mod ids;
mod inbox;
mod kept;
mod members;
mod moves;
mod options;
mod outbox;
#[doc(hidden)]
pub mod planted;
mod records;
mod rows;
mod sagas;
mod schema;
mod start_in;
mod statement;
mod statistics;
mod store;
mod transaction;
mod work;

pub use self::options::{PostgresOptions, Relay};
pub use self::statistics::Statistics;
pub use self::store::PostgresStore;
