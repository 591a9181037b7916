use std::fmt;

use super::super::plan::{Disturbance, Point};

/// What the move itself is called among the boundaries.
pub(super) const THE_MOVE: &str = "the move to another version";

/// What becomes of the process that runs the old version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It crashes there, and the one after it has the new version only.
    Crash,
    /// It is told to stop there, and the one after it has the new version only.
    Stop,
    /// It is held up there, and goes on when another one with the new version has asked for the move.
    Beside,
}

/// One run: where it is moved, and what is done to it behind that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MoveRun {
    pub(super) point: Point,
    pub(super) manner: Manner,
    /// The step of the new version that rejects.
    pub(super) rejected: Option<&'static str>,
    pub(super) then: Disturbance,
}

impl MoveRun {
    /// What is done to the process that runs the old version.
    pub(super) fn disturbance(&self) -> Disturbance {
        let Point { boundary, is_amid_errors, .. } = self.point.clone();
        match self.manner {
            Manner::Crash => Disturbance::Crash { boundary, is_amid_errors },
            Manner::Stop | Manner::Beside => Disturbance::Halt { boundary, is_amid_errors },
        }
    }

    pub(super) fn at(point: &Point, manner: Manner) -> Self {
        Self { point: point.clone(), manner, rejected: None, then: Disturbance::None }
    }
}

impl fmt::Display for MoveRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { point, manner, rejected, then } = self;
        let manner = match manner {
            Manner::Crash => "moved after a crash",
            Manner::Stop => "moved after a stop",
            Manner::Beside => "moved while its process is held up",
        };
        write!(f, "{manner} {}", point.boundary)?;
        if let Some(step) = point.rejected {
            write!(f, ", while {step} rejects")?;
        }
        if *then != Disturbance::None {
            write!(f, "; then {then}")?;
        }
        if let Some(step) = rejected {
            write!(f, "; then {step} rejects in the new version")?;
        }
        Ok(())
    }
}
