//! Steps of the engine's own that only wait for a time.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::parts::Parts;
use super::{Mapping, SagaFn, SagaProblem, SignalWait, StepBuilder, StepDefinition, StepRun};
use crate::key::{StepId, check_step_name};
use crate::machine::{StepShape, UndoShape};
use crate::step::{NeededOutput, Needs, Payload, StepOptions, codec};
use crate::store::Store;

/// What a step waits for that does nothing else.
#[derive(Debug, Clone)]
pub(crate) enum Idle {
    /// So much time.
    For(Duration),
    /// As much time as its mapping gave.
    Mapped,
    /// The moment that its mapping gave.
    Until,
    /// A message from outside.
    Signal(Arc<SignalWait>),
}

impl Idle {
    /// The same where no time passes: it is over at once, with that signal if it waits for one.
    pub(super) fn played(&self, signal: Option<Vec<u8>>) -> Self {
        match self {
            Self::For(_) | Self::Mapped | Self::Until => Self::For(Duration::ZERO),
            Self::Signal(wait) => Self::Signal(Arc::new(wait.over(signal))),
        }
    }
}

impl<S: Store> StepDefinition<S> {
    pub(super) fn of_idle(name: &'static str, idle: Idle) -> Self {
        Self {
            name,
            doing: StepId::doing(name),
            options: StepOptions::DEFAULT.no_compensation(),
            run: StepRun::Idle(idle),
            undo: None,
            resolve: None,
            input: None,
            mapped: Vec::new(),
            needs: Needs::default(),
            undo_takes: Vec::new(),
            check_output: |bytes| codec::<()>().decode(bytes).map_err(|error| error.to_string()),
            check_input: |_| Ok(()),
            check_list: None,
        }
    }
}

impl<S: Store> Parts<S> {
    pub(super) fn add_idle(&mut self, step: StepDefinition<S>, earlier: &[NeededOutput]) {
        let (name, effect) = (step.name, step.run.effect());
        self.problems.extend(check_step_name(name).err().map(|error| SagaProblem::Name(error.to_string())));
        let shape = StepShape::new(name, effect, UndoShape::NotNeeded);
        self.add_shaped(step, shape, earlier);
    }

    fn add_sleep(&mut self, name: &'static str, idle: Idle, input: Option<Mapping>, earlier: &[NeededOutput]) {
        let mapped = earlier.iter().map(|needed| needed.step).collect();
        self.add_idle(StepDefinition { input, mapped, ..StepDefinition::of_idle(name, idle) }, earlier);
    }
}

/// # Sleeping
///
/// A sleep is a step of the engine's own, with a name of its own. Its command is a row that falls due when the sleep ends.
/// So a sleep outlives restarts, costs nothing meanwhile, and ends on any runtime that works on the store. Its duration is
/// decided once, when the step's turn comes, and stored with the command. A sleep has no compensation. A saga that
/// compensates or is cancelled does not wait for the end of its sleep. A branch of a group can have a sleep.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use saga_core::memory::MemoryStore;
/// use saga_core::{Outcome, Output, Runtime, Saga, StepError, saga_step};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Trial { customer: String, ends: SystemTime }
///
/// #[saga_step(no_compensation)]
/// async fn send_welcome(trial: Trial) -> Result<Duration, StepError> {
///     Ok(Duration::from_millis(10))
/// }
///
/// #[saga_step]
/// async fn send_invoice(trial: Trial) -> Result<(), StepError> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let trial = Saga::named("trial")
///     .input::<Trial>()
///     .step::<send_welcome>()
///     .sleep_from("settle-in", |_: &Trial, Output(time): Output<send_welcome>| time)
///     .sleep_until("until-it-ends", |trial: &Trial| trial.ends)
///     .step::<send_invoice>()
///     .build()?;
///
/// let runtime = Runtime::builder(MemoryStore::new()).saga(&trial).start().await?;
/// let ada = Trial { customer: "Ada".to_owned(), ends: SystemTime::UNIX_EPOCH };
/// let outcome = runtime.start(&trial, "trial-1", ada).await?.outcome().await?;
/// assert!(matches!(outcome, Outcome::Completed { .. }));
/// # runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
impl<S: Store, I: Payload, P> StepBuilder<S, I, P> {
    /// Adds a step that sleeps, for so long from when its turn has come.
    #[must_use]
    pub fn sleep(mut self, name: &'static str, duration: Duration) -> Self {
        self.parts.add_sleep(name, Idle::For(duration), None, &[]);
        self
    }

    /// Adds a step that sleeps as long as a closure of the definition says, which is made of the saga's input and of what
    /// earlier steps returned: see [`SagaFn`].
    #[must_use]
    pub fn sleep_from<M>(mut self, name: &'static str, duration: impl SagaFn<I, Duration, M>) -> Self {
        let needed = duration.needed();
        self.parts.add_sleep(name, Idle::Mapped, Some(Mapping::to_value(duration)), &needed);
        self
    }

    /// Adds a step that sleeps until a moment by the clock of the store, which a closure of the definition makes: see
    /// [`SagaFn`]. If the moment has passed, the saga goes on at once.
    #[must_use]
    pub fn sleep_until<M>(mut self, name: &'static str, moment: impl SagaFn<I, SystemTime, M>) -> Self {
        let needed = moment.needed();
        self.parts.add_sleep(name, Idle::Until, Some(Mapping::to_moment(moment)), &needed);
        self
    }
}
