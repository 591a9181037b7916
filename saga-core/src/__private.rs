//! What the code that the attributes generate calls. Nothing here is meant to be named by hand, and
//! all of it may change with any version.

pub use std::{boxed::Box, option::Option, result::Result, time::Duration};

pub use crate::{
    step::{
        Codec, Compensate, Compensation, CompensationHandler, Given, Handler, Ignored, Run, Step, StepError,
        StepOptions, StepReturn, Undo, UndoOf, codec, finish, finish_alias, no_codec, read_compensation, read_step,
        undo, undone_by,
    },
    store::Store,
};
