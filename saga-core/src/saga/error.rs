use std::fmt;

use super::span::Span;

/// An invalid saga definition: all its problems, each with its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SagaError {
    saga: String,
    /// The problems, each with its remedy.
    pub problems: Vec<SagaProblem>,
}

/// One problem of a saga definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SagaProblem {
    /// The saga's name is invalid.
    #[error("{0}")]
    Name(String),
    /// The saga has no step.
    #[error("it has no step; add one with `.step::<name>()`")]
    NoSteps,
    /// More steps than the limit.
    #[error("it has {count} steps; at most {max} are allowed, so make a part of it a saga of its own")]
    TooManySteps {
        /// How many it has.
        count: usize,
        /// How many are allowed.
        max: usize,
    },
    /// Two steps have the same name.
    #[error("two of its steps are named `{step}`; give one of them another name with `#[saga_step(name = \"..\")]`")]
    DuplicateStep {
        /// The name.
        step: &'static str,
    },
    /// A step or its compensation takes the lock of the step, which has none.
    #[error(
        "`{step}` or its compensation takes `Locked`, and the step has no lock; write \
         `#[saga_step(lock = |input| Entity::new(..))]`, or leave the parameter out"
    )]
    NoLock {
        /// The step.
        step: &'static str,
    },
    /// A step needs the output of a step that does not run before it.
    #[error(
        "`{step}` needs the output of `{needed}`, which does not run before it; put `.step::<{needed}>()` in front, or \
         `.wait_for` if it is a signal, `.semantic_lock` if it is a lock"
    )]
    LateOutput {
        /// The step.
        step: &'static str,
        /// Whose output it needs.
        needed: &'static str,
    },
    /// A step needs the output of a step in another branch of its parallel group.
    #[error(
        "`{step}` needs the output of `{needed}`, which runs beside it in another branch of a parallel group; put `{step}` behind the group, or behind `{needed}` in its branch"
    )]
    SiblingOutput {
        /// The step.
        step: &'static str,
        /// Whose output it needs.
        needed: &'static str,
    },
    /// A step takes a single output of a `for_each` step.
    #[error(
        "`{step}` takes the output of `{needed}`, which runs once for each item of a list and gives a list; take it as `Outputs<..>`"
    )]
    OutputOfEach {
        /// The step.
        step: &'static str,
        /// Whose output it needs.
        needed: &'static str,
    },
    /// A step takes a list of outputs of a step that runs once.
    #[error(
        "`{step}` takes the outputs of `{needed}` as a list, but it runs once; take it as `Output<..>`, or run it for each item with `.for_each`"
    )]
    OutputOfOne {
        /// The step.
        step: &'static str,
        /// Whose output it needs.
        needed: &'static str,
    },
    /// A step takes the output of a step in an arm of a choice without an `Option`.
    #[error(
        "`{step}` takes the output of `{needed}`, which stands in an arm of a choice and may not run; take it as `Option<Output<..>>`"
    )]
    OutputOfArm {
        /// The step.
        step: &'static str,
        /// Whose output it needs.
        needed: &'static str,
    },
    /// A step takes the output of a step that always runs as an `Option`.
    #[error(
        "`{step}` takes the output of `{needed}` as an `Option`, but that step always runs; leave `Option<..>` out"
    )]
    OutputOfSure {
        /// The step.
        step: &'static str,
        /// Whose output it needs.
        needed: &'static str,
    },
    /// A step takes the output of a step in another arm of the same choice.
    #[error(
        "`{step}` takes the output of `{needed}`, which stands in another arm of the same choice, so that never both run; put `{step}` behind the choice, or into the arm of `{needed}`"
    )]
    OutputOfOtherArm {
        /// The step.
        step: &'static str,
        /// Whose output it needs.
        needed: &'static str,
    },
    /// A saga that cannot be a step at this place.
    #[error("the sub-saga `{step}`: {problem}")]
    SubSaga {
        /// The step.
        step: &'static str,
        /// What is wrong with it, and what to write instead.
        problem: String,
    },
    /// A semantic lock at the wrong place, or one that is ended there.
    #[error("the semantic lock `{lock}`: {problem}")]
    SemanticLock {
        /// The lock.
        lock: &'static str,
        /// What is wrong with it, and what to write instead.
        problem: &'static str,
    },
    /// An invalid choice.
    #[error("the choice `{choice}`: {problem}")]
    Choice {
        /// The choice.
        choice: &'static str,
        /// What is wrong with it, and what to write instead.
        problem: String,
    },
    /// A step that cannot be a `for_each` step in this way.
    #[error("`{step}` is done {remedy}")]
    Each {
        /// The step.
        step: &'static str,
        /// How it can be.
        remedy: &'static str,
    },
    /// A parallel group without a branch, or a branch without a step.
    #[error("{0}")]
    Group(&'static str),
    /// A step that may have to be undone has no compensation.
    #[error(
        "`{step}` may have to be undone, but has no compensation; write `#[saga_step(compensate = ..)]`, in a \
         contract `compensated`, or `no_compensation` if there is nothing to undo, or call `.pivot()` behind the step that cannot be undone"
    )]
    NoCompensation {
        /// The step.
        step: &'static str,
    },
    /// `.pivot()` before any step, twice, or inside a parallel group.
    #[error("{0}")]
    Pivot(&'static str),
    /// A version of 0.
    #[error("its version is 0; versions count from 1")]
    Version,
    /// `max_concurrent` of 0.
    #[error("`.max_concurrent(0)` lets none of its steps run; 1 runs them one after the other")]
    MaxConcurrent,
    /// A retention whose keys are forgotten before the sagas.
    #[error(
        "its retention keeps keys for {} and whole sagas for {}; keep keys at least as long, or leave `.key_days(..)` out",
        Span(*.key),
        Span(*.full)
    )]
    Retention {
        /// How long keys are kept.
        key: std::time::Duration,
        /// How long whole sagas are kept.
        full: std::time::Duration,
    },
}

impl SagaError {
    pub(super) fn new(saga: &str, problems: Vec<SagaProblem>) -> Self {
        Self { saga: saga.to_owned(), problems }
    }
}

impl fmt::Display for SagaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the saga `{}` cannot be built", self.saga)?;
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { ": " } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SagaError {}
