//! The same works as sagas on the engine and the PostgreSQL store, as users write them: a function a step, and the
//! runtime with its default settings.

mod batched;
mod hot;
mod locked;
mod orders;
mod portable;
mod refusing;
mod retrying;
mod run;

pub(super) use orders::{order, saga as orders};
pub(super) use run::{run, runtime};
