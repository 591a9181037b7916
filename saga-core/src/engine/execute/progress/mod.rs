//! Writes the progress reports of external steps.

mod progress_writer;

pub(crate) use self::progress_writer::{IN_RESOLUTION, IN_TRANSACTION, ProgressWriter};
