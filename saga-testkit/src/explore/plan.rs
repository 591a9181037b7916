use std::fmt;

/// One run: which step rejects, so that the way back is run, and what is disturbed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) rejected: Option<&'static str>,
    pub(super) disturbance: Disturbance,
}

/// A boundary, and what happens to the saga on the way there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) rejected: Option<&'static str>,
    pub(super) is_amid_errors: bool,
    pub(super) boundary: String,
}

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

impl Disturbance {
    pub(super) fn is_crash(&self) -> bool {
        matches!(self, Self::Crash { .. })
    }
}

impl Point {
    /// Whether the process can be held up there while another one works: in a transaction it would have the store.
    pub(super) fn is_outside(&self, in_transactions: &[(&'static str, bool)]) -> bool {
        let places = in_transactions
            .iter()
            .flat_map(|&(step, is_undo)| [false, true].map(|is_behind| Place { step, is_undo, is_behind }.to_string()));
        !places.into_iter().any(|place| place == self.boundary)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rejected, disturbance } = self;
        write!(f, "{disturbance}")?;
        rejected.map_or(Ok(()), |step| write!(f, ", while {step} rejects"))
    }
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
pub(super) fn disturbances(steps: &[&'static str], undone: &[(&'static str, &'static str)]) -> Vec<Run> {
    let places = |step: &'static str, is_undo: bool| [false, true].map(|is_behind| Place { step, is_undo, is_behind });
    let all = |rejected: Option<&'static str>, [before, behind]: [Place; 2]| {
        [
            Disturbance::FailOnce(before),
            Disturbance::FailAlways(before),
            Disturbance::FailAlways(behind),
            Disturbance::Twice(behind),
        ]
        .map(|disturbance| Run { rejected, disturbance })
    };
    let forward = steps.iter().flat_map(|step| all(None, places(step, false)));
    // An undo runs when some later step rejects.
    let back = undone.iter().flat_map(|(step, rejected)| all(Some(*rejected), places(step, true)));
    forward.chain(back).collect()
}
