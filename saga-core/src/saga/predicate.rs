use std::fmt;
use std::sync::Arc;

use super::StepOutputs;
use crate::step::{Outputs, Payload, codec};
use crate::unwind::caught;

type Holds = dyn Fn(&[u8], &Outputs) -> Result<bool, String> + Send + Sync;

/// What must hold for an arm of a choice, with its types taken off.
#[derive(Clone)]
pub(crate) struct Predicate(Arc<Holds>);

/// An arm of a choice.
#[derive(Debug, Clone)]
pub(crate) struct Arm {
    pub(crate) name: &'static str,
    /// Nothing where it runs if no other does.
    pub(crate) holds: Option<Predicate>,
}

impl Predicate {
    pub(super) fn of_input<I: Payload>(holds: impl Fn(&I) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |input, _| {
            let input = codec::<I>().decode(input).map_err(|error| error.to_string())?;
            Ok(holds(&input))
        }))
    }

    pub(super) fn of_outputs<I: Payload, E: StepOutputs>(
        holds: impl Fn(&I, E::Outputs) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |input, outputs| {
            let input = codec::<I>().decode(input).map_err(|error| error.to_string())?;
            let outputs = E::read(outputs).map_err(|error| error.to_string())?;
            Ok(holds(&input, outputs))
        }))
    }
}

impl Arm {
    /// Whether the arm may run.
    ///
    /// The predicate is the user's code, and so is what reads its values: a panic concerns its own saga only.
    pub(super) fn holds(&self, input: &[u8], outputs: &Outputs) -> Result<bool, String> {
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
