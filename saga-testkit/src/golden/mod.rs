//! Golden files: stored sagas of a version, which the program as it stands now must still be able to finish.
//!
//! When a program is deployed, sagas are under way that its predecessor began. Their states, what their steps were given
//! and what they returned lie in the store, and the new program reads all of it by its own definitions, mappings and types.
//! A golden file holds such sagas: a saga of a definition at every point at which it can stand, on its way forward and, for
//! each step that rejects, on its way back. [`Golden::check`] hands each of them to the definition as it is today, lets it
//! go on to its end, and says what differs.
//!
//! A saga that is a step of it is a saga there as well: the file holds what is stored of both, in front of each function of
//! either, and both go on. Its definition is held to what it was as this one is. Where a saga starts a new version of it
//! now, the old one is given with [`beside`](Golden::beside).
//!
//! No time passes: who sleeps wakes at once, and a deadline does not pass.
//!
//! The functions of the steps are not called, so there is no database and no service to set up: what they return is given
//! with [`returns`](Golden::returns), once. What is real are the engine, the definition, its mappings and every type that
//! is stored.
//!
//! The file is made with `UPDATE_GOLDEN=1` in the environment of the test, and belongs into version control. One of a
//! version that has changed is not overwritten: the changed definition gets a version of its own, and a file of its own.
//! The file of the old version is kept, and checked, for as long as sagas of it may be under way.
//!
//! ```
//! use saga_core::memory::{MemoryConn, MemoryStore};
//! use saga_core::{Saga, StepError, saga_compensation, saga_step};
//! use saga_testkit::golden::Golden;
//!
//! #[saga_step(compensate = put_back)]
//! async fn take_out(conn: &mut MemoryConn, amount: i64) -> Result<i64, StepError> {
//!     conn.add("left", -amount)?;
//!     Ok(amount)
//! }
//!
//! #[saga_compensation]
//! async fn put_back(conn: &mut MemoryConn, amount: i64, _taken: i64) -> Result<(), StepError> {
//!     conn.add("left", amount)?;
//!     Ok(())
//! }
//!
//! #[saga_step]
//! async fn pay_in(conn: &mut MemoryConn, amount: i64) -> Result<(), StepError> {
//!     conn.add("right", amount)?;
//!     Ok(())
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let transfer: Saga<MemoryStore, i64> =
//!     Saga::named("transfer").input().step::<take_out>().step::<pay_in>().build().expect("a valid saga");
//! # let folder = std::env::temp_dir().join(format!("golden-{}", std::process::id()));
//! # let path = folder.join("transfer-v1.json");
//! let golden = Golden::of(&transfer, &7).returns::<take_out>(&7);
//! # golden.record(&path).await.expect("it can be recorded");
//! golden.check(&path).await.expect("sagas of version 1 can be finished");
//! # std::fs::remove_dir_all(&folder).expect("it is there");
//! # });
//! ```

mod answers;
mod compare;
mod file;
mod play;
mod rows;
mod subject;

pub use self::file::{Damage, GoldenError};
pub use self::subject::Golden;
