//! What a runtime finds when it starts: values of unfinished sagas that are no values of the registered types.

use std::fmt;

use crate::key::{Key, Tenant};
use crate::store::SagaRow;

/// Stored values of one kind that cannot be read as the type that the registered definition has for them: the type changed,
/// and the version of the definition did not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableValues {
    /// The name of the definition.
    pub saga: String,
    /// Its version.
    pub version: u32,
    /// The step. `None` for the input of the saga.
    pub step: Option<String>,
    /// What cannot be read: `input`, `output`, or `signal` for a message that a wait received.
    pub value: &'static str,
    /// How many of the sagas that were read have such a value.
    pub sagas: usize,
    /// How many unfinished sagas of the definition were read.
    pub sampled: usize,
    /// The tenant of one of the sagas.
    pub tenant: Tenant,
    /// The key of this saga.
    pub key: Key,
    /// Its problem: the type, and where the value does not fit. It never contains the value.
    pub problem: String,
}

impl UnreadableValues {
    /// Values of this kind, of a step or of the saga itself, with the first saga that is to be counted.
    pub(crate) fn new(
        example: &SagaRow,
        (step, value): (Option<&str>, &'static str),
        sampled: usize,
        problem: String,
    ) -> Self {
        Self {
            saga: example.definition.name.to_string(),
            version: example.definition.version,
            step: step.map(str::to_owned),
            value,
            sagas: 0,
            sampled,
            tenant: example.tenant.clone(),
            key: example.key.clone(),
            problem,
        }
    }
}

impl fmt::Display for UnreadableValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { saga, version, step, value, sagas, sampled, key, problem, .. } = self;
        let article = if *value == "signal" { "a" } else { "an" };
        write!(f, "{sagas} of {sampled} unfinished sagas of {saga} version {version} have {article} {value}")?;
        if let Some(step) = step {
            write!(f, " of the step `{step}`")?;
        }
        write!(f, " that cannot be read, such as `{key}`: {problem}")
    }
}
