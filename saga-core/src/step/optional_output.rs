//! What a step reads that an event asked for: outputs that may not be there yet.

use super::{OptionalOutputs, Step, StepContext, StepError};

impl StepContext {
    /// What another step of this service returned for the same saga, where events ask for both: as it was when the event
    /// came that asked for this one. Nothing if it was not done by then.
    ///
    /// The service says that it is read: `.on::<Event>().run::<this>().reads::<earlier>()`. A step that cannot go on
    /// without it takes it as [`Output`](super::Output) instead.
    ///
    /// # Errors
    /// When the service does not say so, or what is recorded cannot be read: the saga needs a person then.
    pub fn optional_output<T: Step>(&self) -> Result<Option<T::Output>, StepError> {
        let OptionalOutputs { reads, outputs } = &self.parts.earlier;
        if !reads.contains(&T::NAME) {
            let name = T::NAME;
            return Err(StepError::stuck(format!(
                "its service does not say that it reads `{name}`; add `.reads::<{name}>()` behind `.run::<..>()`"
            )));
        }
        let unreadable = |error| StepError::stuck(format!("the recorded output of `{}`: {error}", T::NAME));
        outputs.get(T::NAME).map(|stored| T::OUTPUT.decode(stored)).transpose().map_err(unreadable)
    }

    /// The same context with what an earlier step of the service returned, or with nothing of it.
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
