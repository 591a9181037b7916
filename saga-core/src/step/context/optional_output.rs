//! What a step reads that an event asked for: outputs that may not be there yet.

use crate::step::{OptionalOutputs, Step, StepContext, StepError};

impl StepContext {
    /// In a choreography, the output of another step of this service for the same saga, as it was when this step's event
    /// arrived; `None` if that step was not done by then.
    ///
    /// The service must declare it: `.on::<Event>().run::<this>().reads::<earlier>()`. A step that needs the output takes
    /// [`Output`](crate::step::Output) instead, and waits for it.
    ///
    /// # Errors
    /// If the service does not declare it, or the recorded output cannot be read: the saga is then stuck.
    pub fn optional_output<T: Step>(&self) -> Result<Option<T::Output>, StepError> {
        let OptionalOutputs { reads, outputs } = &self.parts.earlier;
        if !reads.contains(&T::NAME) {
            let name = T::NAME;
            return Err(StepError::unreadable(format!(
                "its service does not say that it reads `{name}`; add `.reads::<{name}>()` behind `.run::<..>()`"
            )));
        }
        let unreadable = |error| StepError::unreadable(format!("the recorded output of `{}`: {error}", T::NAME));
        outputs.get(T::NAME).map(|stored| T::OUTPUT.decode(stored)).transpose().map_err(unreadable)
    }

    /// The same context with the output of an earlier step of the service, or with `None`.
    ///
    /// # Panics
    /// The output cannot be stored.
    #[must_use]
    pub fn with_optional_output<T: Step>(mut self, output: Option<&T::Output>) -> Self {
        self.parts.earlier.reads.push(T::NAME);
        if let Some(output) = output {
            match T::OUTPUT.encode(output) {
                Ok(bytes) => self.parts.earlier.outputs.insert(T::NAME, bytes.into()),
                Err(error) => panic!("the output of `{}` cannot be stored: {error}", T::NAME),
            }
        }
        self
    }
}
