use std::fmt;

use super::super::plan::{Disturbance, Run};

/// One run: how the old saga comes to nothing, with what the new one begins, and what is done to that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RestartRun {
    pub(super) base: Run,
    pub(super) from: &'static str,
    /// The step of the new saga that rejects.
    pub(super) rejected: Option<&'static str>,
    pub(super) then: Disturbance,
}

impl fmt::Display for RestartRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { rejected, disturbance } = &self.base;
        write!(f, "restarted from {}", self.from)?;
        if *disturbance != Disturbance::None {
            write!(f, ", after {disturbance}")?;
        }
        if let Some(step) = rejected {
            write!(f, ", after {step} had rejected")?;
        }
        if self.then != Disturbance::None {
            write!(f, "; then {}", self.then)?;
        }
        if let Some(step) = self.rejected {
            write!(f, "; then {step} rejects in the new saga")?;
        }
        Ok(())
    }
}
