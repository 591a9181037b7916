//! Recording how an attempt ended.

mod attempt_recorder;
mod late;

pub(crate) use self::attempt_recorder::AttemptRecorder;
