//! What the code that the attributes generate calls. Nothing here is meant to be named by hand, and
//! all of it may change with any version.

pub use std::{boxed::Box, option::Option, result::Result, time::Duration};

pub use crate::{
    step::{
        Codec, Compensate, Compensated, Compensation, CompensationHandler, Contract, Given, Handler, Hosted, Ignored,
        Resolution, ResolveFn, ResolveOf, ResolvedValue, Run, Step, StepError, StepOptions, StepReturn, Uncompensated,
        Undo, UndoOf, codec, compensated, finish, finish_alias, implemented_input, implemented_name,
        implemented_output, no_codec, read_compensation, read_resolution, read_step, resolved_by, uncompensated, undo,
        undone_by,
    },
    store::Store,
};
