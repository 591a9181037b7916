//! The events that a choreographed step emits.

use std::fmt;
use std::sync::Arc;

use crate::step::{Event, Rejection, Step};
use crate::unwind::caught;

/// The events that a choreographed step emits, and the outputs of other steps that it reads.
#[derive(Debug, Default)]
pub(crate) struct EmittedEvents {
    /// When it was done.
    pub(crate) done: Vec<EventEncoder>,
    /// When it was rejected or failed.
    pub(crate) failed: Vec<EventEncoder>,
    /// When it was undone.
    pub(crate) undone: Vec<EventEncoder>,
    /// The steps whose outputs it reads.
    pub(crate) reads: Vec<OptionalOutput>,
    /// The service that follows the saga.
    pub(crate) reports_to: Option<Arc<str>>,
}

/// A step whose output another one reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionalOutput {
    pub(crate) step: &'static str,
    /// Whether the reading step waits for it.
    pub(crate) is_awaited: bool,
}

type Make = dyn Fn(&[u8], &[u8]) -> Result<Vec<u8>, String> + Send + Sync;

/// Makes an event of the step's input and its outcome.
#[derive(Clone)]
pub(crate) struct EventEncoder {
    pub(crate) event: &'static str,
    make: Arc<Make>,
}

impl EventEncoder {
    /// That the step was done.
    pub(crate) fn of_output<T: Step, E: Event>(
        map: impl Fn(&T::Input, &T::Output) -> E + Send + Sync + 'static,
    ) -> Self {
        Self::new::<E>(move |input, output| {
            let output = T::OUTPUT.decode(output).map_err(|error| error.to_string())?;
            Ok(map(&input_of::<T>(input)?, &output))
        })
    }

    /// That the step was rejected, or failed.
    pub(crate) fn of_rejection<T: Step, E: Event>(
        map: impl Fn(&T::Input, &Rejection) -> E + Send + Sync + 'static,
    ) -> Self {
        Self::new::<E>(move |input, reason| {
            let reason = serde_json::from_slice(reason).map_err(|error| error.to_string())?;
            Ok(map(&input_of::<T>(input)?, &reason))
        })
    }

    /// That the step was undone.
    pub(crate) fn of_undo<T: Step, E: Event>(map: impl Fn(&T::Input) -> E + Send + Sync + 'static) -> Self {
        Self::new::<E>(move |input, _| Ok(map(&input_of::<T>(input)?)))
    }

    /// An event that is made of another event.
    pub(crate) fn of_event<E: Event, F: Event>(map: impl Fn(&E) -> F + Send + Sync + 'static) -> Self {
        Self::new::<F>(move |event, _| {
            let event: E = serde_json::from_slice(event).map_err(|error| error.to_string())?;
            Ok(map(&event))
        })
    }

    fn new<E: Event>(make: impl Fn(&[u8], &[u8]) -> Result<E, String> + Send + Sync + 'static) -> Self {
        let make = move |of: &[u8], what: &[u8]| {
            let event = make(of, what)?;
            serde_json::to_vec(&event).map_err(|error| error.to_string())
        };
        Self { event: E::NAME, make: Arc::new(make) }
    }

    /// The encoded event. The user's code makes it: a panic concerns its own saga only.
    pub(crate) fn make(&self, of: &[u8], what: &[u8]) -> Result<Vec<u8>, String> {
        let made = caught(|| (self.make)(of, what));
        let made = made.unwrap_or_else(|panic| Err(format!("it panicked: {panic}")));
        made.map_err(|problem| format!("its event `{}` cannot be made: {problem}", self.event))
    }
}

impl fmt::Debug for EventEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventEncoder").field(&self.event).finish()
    }
}

fn input_of<T: Step>(input: &[u8]) -> Result<T::Input, String> {
    T::INPUT.decode(input).map_err(|error| error.to_string())
}
