//! Saga definitions: the steps in order, checked when they are built.

mod builder;
mod chain;
mod choice;
mod definition;
mod error;
mod graph;
mod group;
mod instrument;
mod lock_rules;
mod migration;
mod migration_said;
mod parts;
mod played;
mod retention;
mod returns;
#[expect(clippy::module_inception, reason = "the type `Saga` is the main item of this folder")]
mod saga;
mod saga_fn;
mod semantic_lock;
mod sleep;
mod span;
mod sub_saga;
mod wait;

pub use self::builder::{Root, SagaBuilder, SagaInit};
pub use self::chain::{Branch, Nested, StepBuilder};
pub use self::choice::Choice;
pub(crate) use self::definition::arm::{Arm, Predicate};
pub(crate) use self::definition::definition::{Definition, LockedOf, StepDefinition, StepRun};
pub(crate) use self::definition::emitted_events::{EmittedEvents, EventEncoder, OptionalOutput};
pub(crate) use self::definition::erase::{BatchInputs, BatchUnfinished, StepResolve, StepUndo, Unfinished};
pub(crate) use self::definition::idle::{Idle, LockWait, Or};
pub(crate) use self::definition::mapping::Mapping;
pub(crate) use self::definition::result_of::ResultOf;
pub use self::error::{SagaError, SagaProblem};
pub use self::group::Group;
#[doc(hidden)]
pub use self::instrument::StepHook;
pub(crate) use self::instrument::looked_at;
pub(crate) use self::migration::Plan;
pub use self::migration::{Migration, MigrationBuilder, MigrationError, SameOutput};
#[doc(hidden)]
pub use self::played::Player;
pub use self::retention::Retention;
pub use self::returns::SagaWithResult;
pub use self::saga::Saga;
pub use self::saga_fn::SagaFn;
pub use self::semantic_lock::EntitiesFn;
#[doc(hidden)]
pub use self::semantic_lock::EntitiesMapping;
pub(crate) use self::span::Span;
pub use self::sub_saga::SubSaga;
pub(crate) use self::wait::LONGEST;
pub use self::wait::{Wait, WaitLimit};
