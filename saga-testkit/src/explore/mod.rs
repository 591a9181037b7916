//! Crash exploration: runs a user's saga on the user's store, and disturbs it at every boundary.
//!
//! [`explore`] first runs the saga without a disturbance and notes its boundaries: before and after each function,
//! before each store call that writes for the saga, and after its commit. Then it runs the saga many times, each time
//! on a fresh store:
//!
//! - It **crashes** the process at each boundary, one per run, and starts another process on the same store.
//! - It runs every function **twice**: in a transaction, the first run is rolled back; outside, the first answer is
//!   lost.
//! - It **fails** every step in turn: with a rejection, with an error at the first attempt, with an error at each attempt,
//!   and, after the function, with an answer that is always lost.
//! - It **compares the tables** around each batch step that rejects an input ([`rejected_by`](Explore::rejected_by)),
//!   because a rejection promises that nothing was written for this input.
//! - It does the same while the saga compensates.
//!
//! After each run the saga must have ended, with its sub-sagas and the steps that it asked other services for, and without
//! remaining work, messages, dead letters or unknown steps. Then the user's [`audit`](Explore::audit) judges the business
//! data. If a run does not reach the point that it should disturb, the exploration fails. For a saga with parallel groups,
//! or with operator actions [`meanwhile`](Explore::meanwhile), what a run reaches depends on what comes first: there the
//! report counts the runs that did not reach their point ([`unreached`](Exploration::unreached)).
//!
//! - **Choices.** The input decides which arms run. The report names the steps of other arms
//!   ([`left_out`](Exploration::left_out)); explore the saga with another input to disturb them.
//! - **Stuck sagas.** A saga that is stuck by design (a rejection after the pivot, an unknown outcome that nothing can
//!   undo) is retried without the disturbance, as an operator would, and must then end.
//! - **Remote steps** run in the same process ([`services`](Explore::services)). Their functions are disturbed as well,
//!   and each message between the services and the saga is lost with the process once.
//! - **Signals and pauses** are sent while the saga runs, in each life of the process
//!   ([`meanwhile`](Explore::meanwhile)).
//! - **Migrations** ([`migration`](Explore::migration)). The saga is moved to another version at each of its
//!   boundaries: after a crash, after a stop, and while its process is held up there. The process is crashed before and
//!   after the move, each later step rejects in turn, and the process is crashed at each boundary of these runs. A saga
//!   that cannot be moved continues, and the report says where and why ([`Exploration::moves`]).
//! - **Restarts** ([`restarts`](Explore::restarts)). A saga that did not complete is restarted as a new saga from each
//!   step that allows it, with the same crashes and rejections. [`audit_restarted`](Explore::audit_restarted) judges
//!   the data of both. A new saga that completes although one of its steps has no effect is a failure.
//! - **Shared commits.** Which consecutive steps share a commit depends on their speed. A run that misses its point for
//!   this reason is repeated with one commit per step.
//! - **Choreographies** have no definition and an exploration of their own: [`explore_events`] delivers the events of
//!   the services in every order and repeats each one, and crashes each service at each of its boundaries.
//!
//! Each run has a [`VirtualTime`](crate::VirtualTime) of its own, so waits, retries and deadlines of days cost nothing. The
//! store of the world is opened on it, and fakes of other systems can take their time with it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use saga_core::engine::RuntimeBuilder;
//! use saga_core::memory::{MemoryConn, MemoryStore};
//! use saga_core::{Migration, Saga, StepError, saga_compensation, saga_step};
//! use saga_testkit::VirtualTime;
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
//!     async fn fresh(&self, time: &VirtualTime) -> Arc<MemoryStore> {
//!         Arc::new(MemoryStore::with_environment(time.environment()))
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
//!         let migration = Migration::between(&self.saga(), &second).assume_done::<note>().build();
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
mod events;
mod explorer;
mod hook;
mod life;
mod moves;
mod operator;
mod plan;
mod process;
mod refusal;
mod report;
mod restarts;
mod store;
mod subject;
mod transaction;
mod world;

pub use self::drive::explore;
pub use self::ended::Ended;
pub use self::events::{EventFailures, EventsExplored, ExploreEvents, FirstEvent, explore_events};
pub use self::moves::Moves;
pub use self::refusal::Refusal;
pub use self::report::{Broken, Exploration, Failures};
pub use self::restarts::{Restarted, Restarts};
pub use self::store::{Boundaries, Explored};
pub use self::subject::Explore;
