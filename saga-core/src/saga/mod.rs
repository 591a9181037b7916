//! Saga definitions: the steps in order, checked when they are built.

mod builder;
mod definition;
mod earlier;
mod erase;
mod error;
mod graph;
mod group;
mod instrument;
mod parts;
mod pause;
mod wait;

pub use self::builder::{Saga, SagaBuilder, SagaName};
pub(crate) use self::definition::{Definition, StepDefinition};
pub use self::earlier::Earlier;
pub(crate) use self::erase::{
    BatchInputs, BatchUnfinished, Mapping, StepResolve, StepRun, StepUndo, Unfinished, panic_message,
};
pub use self::error::{SagaError, SagaProblem};
pub use self::group::{Branch, Group};
#[doc(hidden)]
pub use self::instrument::StepHook;
pub(crate) use self::pause::Pause;
pub(crate) use self::wait::{Or, Wait};
