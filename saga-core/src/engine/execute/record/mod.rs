//! Records the results of attempts, also those of workers that lost their leases.

mod attempt_recorder;
mod late_result;

pub(crate) use self::attempt_recorder::AttemptRecorder;
