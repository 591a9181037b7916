use std::fmt;

/// An invalid service: all its problems, each with its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceError {
    service: String,
    /// The problems, each with its remedy.
    pub problems: Vec<ServiceProblem>,
}

/// One problem of a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceProblem {
    /// The service's name is invalid.
    #[error("{0}")]
    Name(String),
    /// The service has no step.
    #[error("it hosts no step; add one with `.host::<name>()`, or with `.on::<Event>().run::<name>()`")]
    NoSteps,
    /// Two steps have the same name.
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
    /// A step, or its compensation, takes the lock of the step, which has none.
    #[error(
        "`{step}` or its compensation takes `Locked`, and the step has no lock; write \
         `#[saga_step(lock = |input| Entity::new(..))]`, or leave the parameter out"
    )]
    NoLock {
        /// The step.
        step: &'static str,
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
    /// An event whose name cannot be a topic, or an invalid topic.
    #[error("the event `{event}` cannot be received: {problem}")]
    Topic {
        /// The event.
        event: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// An event undoes a step that no event runs, or sets a deadline for it.
    #[error(
        "nothing runs `{step}`, which `{event}` is to undo or to bar; say what it is run for with \
         `.on::<Event>().run::<{step}>()`"
    )]
    NeverRun {
        /// The step.
        step: &'static str,
        /// The event.
        event: &'static str,
    },
    /// An event undoes a step that has no compensation.
    #[error(
        "`{step}` has no compensation, but `{event}` is to undo it; name one: `#[saga_step(compensate = ..)]`, or only \
         keep it from being done with `.bar::<{step}>()`"
    )]
    NoUndo {
        /// The step.
        step: &'static str,
        /// The event.
        event: &'static str,
    },
    /// An event undoes a step that runs once per event, or gives it a tombstone.
    #[error(
        "`{step}` is done for each event, and `{event}` does not say for which of them it is to be undone or barred; \
         run it once a saga, or take what was done back with a step of its own"
    )]
    UndoneEach {
        /// The step.
        step: &'static str,
        /// The event.
        event: &'static str,
    },
    /// A step runs once per saga for one event, and once per event for another.
    #[error("`{step}` is run once a saga and also for each event; choose one of them")]
    OnceAndEach {
        /// The step.
        step: &'static str,
    },
    /// One event runs a step twice, or runs it and undoes it.
    #[error("`{event}` asks twice for `{step}`; leave one of them out")]
    TwiceOnEvent {
        /// The step.
        step: &'static str,
        /// The event.
        event: &'static str,
    },
    /// A step is hosted for other services, and also runs on events.
    #[error(
        "`{step}` is hosted for the sagas of others and also asked for by events, which are told of it in different \
         ways; put it in one of two services, or leave one of them out"
    )]
    HostedAndRun {
        /// The step.
        step: &'static str,
    },
    /// A step reads the output of a step that no event runs here, or that runs once per event.
    #[error(
        "`{step}` reads the output of `{needed}`, which is not run once a saga in this service; make what it needs a \
         part of the event"
    )]
    ReadsOther {
        /// The step.
        step: &'static str,
        /// Whose output it reads.
        needed: &'static str,
    },
}

impl ServiceError {
    pub(super) fn new(service: &str, problems: Vec<ServiceProblem>) -> Self {
        Self { service: service.to_owned(), problems }
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
