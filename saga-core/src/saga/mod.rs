//! Saga definitions: the steps in order, checked when they are built.

mod arm;
mod builder;
mod chain;
mod choice;
mod definition;
mod emitted_events;
mod erase;
mod error;
mod graph;
mod group;
mod idle;
mod instrument;
mod lock_rules;
mod mapping;
mod migration;
mod migration_said;
mod parts;
mod played;
mod result_of;
mod retention;
mod returns;
#[expect(clippy::module_inception, reason = "the type `Saga` is the main item of this folder")]
mod saga;
mod saga_fn;
mod semantic_lock;
mod sleep;
mod step_kinds;
mod sub_saga;
mod wait;

pub(crate) use self::arm::{Arm, Predicate};
pub use self::builder::{Root, SagaBuilder, SagaInit};
pub use self::chain::{Branch, Nested, StepBuilder};
pub use self::choice::Choice;
pub(crate) use self::definition::{Definition, LockedOf, StepDefinition, StepRun};
pub(crate) use self::emitted_events::{EmittedEvents, EventEncoder, OptionalOutput};
pub(crate) use self::erase::{BatchInputs, BatchUnfinished, StepResolve, StepUndo, Unfinished};
pub use self::error::{SagaError, SagaProblem};
pub use self::group::Group;
pub(crate) use self::idle::{Idle, LockWait, Or};
#[doc(hidden)]
pub use self::instrument::StepHook;
pub(crate) use self::instrument::looked_at;
pub(crate) use self::mapping::Mapping;
pub(crate) use self::migration::Plan;
pub use self::migration::{Migration, MigrationBuilder, MigrationError, MigrationFrom, SameOutput};
#[doc(hidden)]
pub use self::played::Player;
pub(crate) use self::result_of::ResultOf;
pub use self::retention::Retention;
pub use self::returns::SagaWithResult;
pub use self::saga::Saga;
pub use self::saga_fn::SagaFn;
pub use self::semantic_lock::EntitiesFn;
#[doc(hidden)]
pub use self::semantic_lock::EntitiesMapping;
pub use self::sub_saga::SubSaga;
pub(crate) use self::wait::LONGEST;
pub use self::wait::{Wait, WaitLimit};
