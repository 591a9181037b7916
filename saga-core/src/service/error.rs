use std::fmt;

/// A service that does not hold together: every problem of it, each with its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceError {
    service: String,
    problems: Vec<ServiceProblem>,
}

/// One problem of a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceProblem {
    /// The service's name is not a legal one.
    #[error("{0}")]
    Name(String),
    /// There is no step.
    #[error("it hosts no step; add one with `.host::<name>()`")]
    NoSteps,
    /// Two steps of one name.
    #[error("it hosts two steps named `{step}`, so a command could mean either; leave one of them out")]
    DuplicateStep {
        /// The name.
        step: &'static str,
    },
    /// The contract of a step names another service.
    #[error(
        "`{step}` is declared for the service `{service}`, so its commands never come here; host it there, or change \
         `service = \"..\"` in its contract"
    )]
    OtherService {
        /// The step.
        step: &'static str,
        /// The service that its contract names.
        service: &'static str,
    },
    /// A step, or its compensation, takes the output of another step.
    #[error(
        "`{step}` or its compensation takes `Output<{needed}>`, but a command brings the input alone; make what it \
         needs a part of the contract's input"
    )]
    NeedsOutput {
        /// The step.
        step: &'static str,
        /// Whose output it needs.
        needed: &'static str,
    },
}

impl ServiceError {
    pub(super) fn new(service: &str, problems: Vec<ServiceProblem>) -> Self {
        Self { service: service.to_owned(), problems }
    }

    /// What is wrong.
    pub fn problems(&self) -> &[ServiceProblem] {
        &self.problems
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the service `{}` cannot be built", self.service)?;
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { ": " } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ServiceError {}
