use std::fmt;

use super::{Args, FromStep, NeededOutput, Needs, Step, StepError};

/// What an earlier step of the saga returned, as a parameter of a later one.
///
/// `Output<charge_card>` names the step by its function. In a test it is made as `Output(payment)`.
pub struct Output<T: Step>(pub T::Output);

impl<T: Step> FromStep for Output<T> {
    fn needs(needs: &mut Needs) {
        needs.outputs.push(NeededOutput::of::<T>());
    }

    fn from_step(args: Args<'_>) -> Result<Self, StepError> {
        let Some(stored) = args.outputs.get(T::NAME) else {
            let absent = args.outputs.when_passed_by::<T>().map(Self);
            return absent.ok_or_else(|| StepError::stuck(format!("the step `{}` has no recorded output", T::NAME)));
        };
        match T::OUTPUT.decode(stored) {
            Ok(output) => Ok(Self(output)),
            Err(error) => {
                Err(StepError::stuck(format!("the recorded output of the step `{}` cannot be read: {error}", T::NAME)))
            }
        }
    }
}

impl<T: Step<Output: fmt::Debug>> fmt::Debug for Output<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Output").field(&self.0).finish()
    }
}

impl<T: Step<Output: Clone>> Clone for Output<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
