//! Progress that a call reports.

mod writer;

pub(crate) use self::writer::{IN_RESOLUTION, IN_TRANSACTION, ProgressWriter};
