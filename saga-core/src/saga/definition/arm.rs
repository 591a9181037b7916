//! The arms of a choice, and the conditions under which they run.

use std::fmt;
use std::sync::Arc;

use super::mapping::called;
use crate::saga::SagaFn;
use crate::step::{Payload, StepOutputs};
use crate::unwind::caught;

/// The arm that runs where no other holds.
pub(in crate::saga) const LAST_ARM: &str = "otherwise";

/// An arm of a choice.
#[derive(Debug, Clone)]
pub(crate) struct Arm {
    pub(crate) name: &'static str,
    /// `None` for the arm that runs where no other does.
    pub(crate) holds: Option<Predicate>,
}

type Holds = dyn Fn(&[u8], &StepOutputs) -> Result<bool, String> + Send + Sync;

/// The condition of an arm, with its types erased.
#[derive(Clone)]
pub(crate) struct Predicate(Arc<Holds>);

impl Predicate {
    pub(in crate::saga) fn of<I: Payload, M>(holds: impl SagaFn<I, bool, M>) -> Self {
        Self(Arc::new(move |input, outputs| called(&holds, input, outputs)))
    }
}

impl Arm {
    /// Whether the arm may run.
    ///
    /// The predicate is the user's code, and so is what reads its values: a panic concerns its own saga only.
    pub(in crate::saga) fn holds(&self, input: &[u8], outputs: &StepOutputs) -> Result<bool, String> {
        let Some(predicate) = &self.holds else { return Ok(true) };
        let held = caught(|| (predicate.0)(input, outputs));
        let held = held.unwrap_or_else(|panic| Err(format!("it panicked: {panic}")));
        held.map_err(|problem| format!("the condition of its arm `{}`: {problem}", self.name))
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}
