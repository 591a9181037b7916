use crate::step::{NeededOutput, Outputs, Step, StepError};

/// A step, or a tuple of up to four, whose outputs a mapping reads.
pub trait StepOutputs {
    /// The output, or the tuple of them.
    type Outputs;

    #[doc(hidden)]
    fn needed() -> Vec<NeededOutput>;

    #[doc(hidden)]
    fn read(outputs: &Outputs) -> Result<Self::Outputs, StepError>;
}

impl<T: Step> StepOutputs for T {
    type Outputs = T::Output;

    fn needed() -> Vec<NeededOutput> {
        vec![NeededOutput::of::<T>()]
    }

    fn read(outputs: &Outputs) -> Result<T::Output, StepError> {
        let Some(bytes) = outputs.get(T::NAME) else {
            let absent = outputs.when_passed_by::<T>();
            return absent.ok_or_else(|| StepError::stuck(format!("the output of `{}` is not there", T::NAME)));
        };
        T::OUTPUT.decode(bytes).map_err(|error| StepError::stuck(format!("the output of `{}`: {error}", T::NAME)))
    }
}

macro_rules! earlier_of_tuples {
    ($(($($T:ident)*))*) => {$(
        impl<$($T: Step),*> StepOutputs for ($($T,)*) {
            type Outputs = ($($T::Output,)*);

            fn needed() -> Vec<NeededOutput> {
                vec![$(NeededOutput::of::<$T>()),*]
            }

            fn read(outputs: &Outputs) -> Result<Self::Outputs, StepError> {
                Ok(($(<$T as StepOutputs>::read(outputs)?,)*))
            }
        }
    )*};
}
earlier_of_tuples! { (A) (A B) (A B C) (A B C D) }
