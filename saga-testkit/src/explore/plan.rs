use std::fmt;

/// Where a function is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) step: &'static str,
    pub(super) is_undo: bool,
    /// Behind the function, when it has done what it does.
    pub(super) is_behind: bool,
}

/// What is done to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Disturbance {
    /// Nothing.
    None,
    /// The process crashes when it first passes the boundary. Amid errors, each function fails the first time as well.
    Crash { boundary: String, is_amid_errors: bool },
    /// The process is held up when it first passes the boundary, until something else was done. Amid errors as above.
    Halt { boundary: String, is_amid_errors: bool },
    /// The function fails the first time.
    FailOnce(Place),
    /// Each function fails the first time.
    FailEachOnce,
    /// The function fails each time.
    FailAlways(Place),
    /// The function runs once more: in a transaction the first run is rolled back, outside its answer is lost.
    Twice(Place),
    /// The saga has an input that this batch step rejects by its answer.
    Answered { step: &'static str },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let undo = if self.is_undo { ":undo" } else { "" };
        let side = if self.is_behind { "behind" } else { "before" };
        write!(f, "{side} {}{undo}", self.step)
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("undisturbed"),
            Self::Crash { boundary, .. } => write!(f, "crash {boundary}"),
            Self::Halt { boundary, .. } => write!(f, "held up {boundary}"),
            Self::FailOnce(place) => write!(f, "an error once {place}"),
            Self::FailEachOnce => f.write_str("an error once before each function"),
            Self::FailAlways(place) => write!(f, "an error each time {place}"),
            Self::Twice(place) => write!(f, "run twice: {place}"),
            Self::Answered { step } => write!(f, "an input that {step} rejects by its answer"),
        }
    }
}

/// Everything that is done to the functions of a saga, and which step rejects meanwhile.
pub(super) fn disturbances(
    steps: &[&'static str],
    undone: &[(&'static str, &'static str)],
) -> Vec<(Option<&'static str>, Disturbance)> {
    let places = |step: &'static str, is_undo: bool| [false, true].map(|is_behind| Place { step, is_undo, is_behind });
    let all = |rejected: Option<&'static str>, [before, behind]: [Place; 2]| {
        [
            (rejected, Disturbance::FailOnce(before)),
            (rejected, Disturbance::FailAlways(before)),
            (rejected, Disturbance::FailAlways(behind)),
            (rejected, Disturbance::Twice(behind)),
        ]
    };
    let forward = steps.iter().flat_map(|step| all(None, places(step, false)));
    // An undo runs when some later step rejects.
    let back = undone.iter().flat_map(|(step, rejected)| all(Some(*rejected), places(step, true)));
    forward.chain(back).collect()
}
