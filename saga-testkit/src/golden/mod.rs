//! Golden files: stored sagas of a version, which the current program must be able to finish.
//!
//! When you deploy a new program, it continues sagas that the old program began. It reads their states, inputs and
//! outputs from the store with its own definitions, mappings and types. A golden file holds such sagas: one before each
//! function call, forward and, for each step that rejects, while compensating. [`Golden::check`] continues each of them
//! with the current definition and reports what differs.
//!
//! The file also holds sub-sagas, before each function call of either saga, and both continue. The definition of a
//! sub-saga is checked as well. If the saga now starts a new version of a sub-saga, give the old one with
//! [`beside`](Golden::beside).
//!
//! No time passes: sleeps end at once, and no deadline passes.
//!
//! The functions of the steps are not called, so the test needs no database and no services. Give their outputs with
//! [`returns`](Golden::returns). The engine, the definition, its mappings and all stored types are real.
//!
//! Run the test with `UPDATE_GOLDEN=1` to write the file, and commit it. The file of a version whose definition has
//! changed is not overwritten: give the changed definition a new version and its own file. Keep the old file, and its
//! test, as long as sagas of that version may run.
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
