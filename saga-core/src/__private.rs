//! What the code that the attributes generate calls. Nothing here is meant to be named by hand, and
//! all of it may change with any version.

pub use std::{boxed::Box, option::Option, result::Result, time::Duration};

/// The log events of the transports, which are as those of the core.
pub mod log {
    pub use crate::log::{debug, info, shielded, tracing, warn};
}

/// For the backends: calls that are made at the same time are served as one.
pub use crate::batches::Batches;
pub use crate::{
    step::{
        Codec, Compensate, Compensation, CompensationHandler, ConnectionIs, Contract, DeclaredContract, EntitiesOf,
        FromStep, Given, Handler, HasCompensation, Hosted, Ignored, Needs, NoCompensation, OnExhausted, Resolution,
        ResolveFn, ResolveOf, ResolvedValue, Run, RunsCompensation, Step, StepError, StepOptions, StepReturn, Undo,
        UndoOf, Unnamed, codec, declared, entities_of, finish, finish_alias, no_codec, resolved_by, undone_by,
    },
    store::Store,
};
