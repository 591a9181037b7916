//! Crash exploration: a user's own saga on a user's own store, disturbed at every boundary that it has.
//!
//! [`explore`] first lets the saga run undisturbed and notes every boundary that it passes: before and behind every
//! function, before every store call that writes for it and behind its commit. Then it runs the saga again and again, each
//! time on a fresh store:
//!
//! - it **crashes** the process at each boundary, one a run, and starts another one on the same store;
//! - it runs every function **twice**: in a transaction the first run is rolled back, outside the first answer is lost;
//! - it **fails** every step in turn: by a rejection, by an error that passes, by an error that stays, and, behind the
//!   function, by an answer that is always lost;
//! - it **compares the tables** around each batch step that rejects an input by its answer
//!   ([`rejected_by`](Explore::rejected_by)): such an answer promises that nothing was written for it;
//! - it does the same on the way back, while the saga compensates.
//!
//! After each run the saga must have ended, with no work, no message and no step in doubt left behind, and the user's
//! [`audit`](Explore::audit) judges the business data. A point that was to be disturbed and was not reached fails the
//! exploration: it proves that it did what it says.
//!
//! Of a saga with choices the input says which arms run. The steps of the others are named in the report
//! ([`left_out`](Exploration::left_out)); another exploration with another input disturbs them.
//!
//! A saga that is stuck by design (a rejection behind the pivot, an unknown outcome that nothing can undo) is tried again
//! as an operator would, without the disturbance, and must end then.
//!
//! Steps of other services are done in the same process ([`services`](Explore::services)): their functions are disturbed as
//! well, and every message between the services and the saga is lost with the process once.
//!
//! What others do to the saga is done beside it in each life of the process: it gets its signals, and is paused and resumed
//! ([`meanwhile`](Explore::meanwhile)).
//!
//! A saga that **moves to another version** ([`migration`](Explore::migration)) is moved at each of its boundaries: after a
//! crash there, after a stop, and while the process that runs it is held up there. It is crashed in front of the move and
//! behind it, each step that comes behind it rejects, and the process is crashed at each boundary of all that. Where a saga
//! cannot be moved it goes on as it was, and the report says where and why ([`Exploration::moves`]).
//!
//! A saga that **came to nothing** can be restarted from each step from which that is allowed, as a new saga
//! ([`restarts`](Explore::restarts)), with the same crashes and rejections. What the two of them left is judged
//! ([`audit_restarted`](Explore::audit_restarted)), and a new saga that completed without a step that stands is a failure.
//!
//! Which consecutive steps share a commit depends on how long they take. What a run does not reach for that reason is tried
//! again with a commit for each step.
//!
//! Sagas that are wired by events have no definition, and so an exploration of their own: [`explore_events`] lets what the
//! services tell each other arrive in every order, and once more, and crashes each service at each of its boundaries.
//!
//! The runtime's time runs [`SPEED`] times as fast, so that waits and retries of seconds do not make the exploration slow.
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use saga_core::engine::RuntimeBuilder;
//! use saga_core::memory::{MemoryConn, MemoryStore};
//! use saga_core::{Migration, Saga, StepError, saga_compensation, saga_step};
//! use saga_testkit::explore::{Ended, Explore, Explored, explore};
//!
//! #[saga_step(compensate = put_back)]
//! async fn take_out(conn: &mut MemoryConn, amount: i64) -> Result<(), StepError> {
//!     conn.add("left", -amount)?;
//!     Ok(())
//! }
//!
//! #[saga_compensation]
//! async fn put_back(conn: &mut MemoryConn, amount: i64) -> Result<(), StepError> {
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
//! /// Only the second version does this.
//! #[saga_step(no_compensation)]
//! async fn note(conn: &mut MemoryConn, amount: i64) -> Result<(), StepError> {
//!     conn.log(format!("{amount}"));
//!     Ok(())
//! }
//!
//! struct Transfer;
//!
//! #[async_trait]
//! impl Explore for Transfer {
//!     type Store = MemoryStore;
//!     type Input = i64;
//!     type World = Arc<MemoryStore>;
//!
//!     fn saga(&self) -> Saga<MemoryStore, i64> {
//!         let saga = Saga::named("transfer").input().step::<take_out>().step::<pay_in>();
//!         saga.build().expect("transfer is a valid saga")
//!     }
//!
//!     fn input(&self) -> i64 {
//!         7
//!     }
//!
//!     async fn fresh(&self) -> Arc<MemoryStore> {
//!         Arc::new(MemoryStore::new())
//!     }
//!
//!     fn store(&self, world: &Arc<MemoryStore>) -> Arc<MemoryStore> {
//!         Arc::clone(world)
//!     }
//!
//!     /// Transfers that are under way go on as the second version.
//!     fn migration(&self) -> Option<Migration<MemoryStore>> {
//!         let second = Saga::named("transfer").input::<i64>().version(2).step::<note>();
//!         let second = second.step::<take_out>().step::<pay_in>().build().expect("transfer is a valid saga");
//!         let migration = Migration::from(&self.saga()).to(&second).assume_done::<note>().build();
//!         Some(migration.expect("the versions fit together"))
//!     }
//!
//!     /// Transfers that came to nothing are made once more.
//!     fn restarts(&self) -> bool {
//!         true
//!     }
//!
//!     async fn audit(&self, world: &Arc<MemoryStore>, ended: &Ended) -> Result<(), String> {
//!         let (left, right) = world.read(|table| (table.counter("left"), table.counter("right")));
//!         match ended {
//!             Ended::Completed if (left, right) == (-7, 7) => Ok(()),
//!             Ended::Compensated if (left, right) == (0, 0) => Ok(()),
//!             _ => Err(format!("{ended:?}, and the accounts are {left} and {right}")),
//!         }
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let report = explore(Transfer).await.expect("no disturbance harms a transfer");
//! assert!(report.crashes() > 10, "{report}");
//! assert!(report.moves().is_some_and(|moves| moves.moved() > 0), "{report}");
//! assert!(report.restarts().is_some_and(|restarts| restarts.begun() > 0), "{report}");
//! # });
//! ```

mod drive;
mod ended;
mod environment;
mod events;
mod explorer;
mod hook;
mod life;
mod moves;
mod plan;
mod process;
mod refusal;
mod report;
mod restarts;
mod slower;
mod store;
mod subject;
mod transaction;

pub use self::drive::explore;
pub use self::ended::Ended;
pub use self::environment::SPEED;
pub use self::events::{EventFailures, EventsExplored, ExploreEvents, FirstEvent, explore_events};
pub use self::moves::Moves;
pub use self::refusal::Refusal;
pub use self::report::{Broken, Exploration, Failures};
pub use self::restarts::{Restarted, Restarts};
pub use self::store::{Boundaries, Explored};
pub use self::subject::Explore;
