use std::fmt;
use std::sync::Arc;

/// What the finished steps of one saga returned, in their stored form, by the name of the step.
///
/// A saga has few steps, so this is a list that is searched from the front; to clone it copies no output.
#[derive(Default, Clone)]
pub struct StepOutputs {
    of_steps: Vec<(&'static str, Arc<[u8]>)>,
    /// The steps that never run, since their arms were not taken.
    passed_by: Vec<&'static str>,
}

impl StepOutputs {
    /// No outputs.
    pub const fn new() -> Self {
        Self { of_steps: Vec::new(), passed_by: Vec::new() }
    }

    /// Adds the stored output of a step; one that the step had before is replaced.
    pub fn insert(&mut self, step: &'static str, output: Arc<[u8]>) {
        match self.of_steps.iter_mut().find(|(name, _)| *name == step) {
            Some((_, before)) => *before = output,
            None => self.of_steps.push((step, output)),
        }
    }

    /// Says that a step never runs.
    pub(crate) fn pass_by(&mut self, step: &'static str) {
        if !self.is_passed_by(step) {
            self.passed_by.push(step);
        }
    }

    pub(crate) fn is_passed_by(&self, step: &str) -> bool {
        self.passed_by.contains(&step)
    }

    /// How many bytes all of them have.
    pub(crate) fn bytes(&self) -> usize {
        self.of_steps.iter().map(|(_, output)| output.len()).sum()
    }

    /// The stored output of a step; `None` if it has not ended, or was skipped without one.
    pub fn get(&self, step: &str) -> Option<&Arc<[u8]>> {
        self.of_steps.iter().find(|(name, _)| *name == step).map(|(_, output)| output)
    }
}

/// What earlier steps returned: of those that the service says are read.
#[derive(Clone, Default)]
pub(crate) struct OptionalOutputs {
    pub(crate) reads: Vec<&'static str>,
    pub(crate) outputs: StepOutputs,
}

impl FromIterator<(&'static str, Arc<[u8]>)> for StepOutputs {
    fn from_iter<I: IntoIterator<Item = (&'static str, Arc<[u8]>)>>(of_steps: I) -> Self {
        let mut outputs = Self::new();
        for (step, output) in of_steps {
            outputs.insert(step, output);
        }
        outputs
    }
}

/// Names the steps and keeps quiet about what they returned: payloads are never printed.
impl fmt::Debug for StepOutputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.of_steps.iter().map(|(name, _)| name)).finish()
    }
}
