//! The extractors that read what earlier steps of the saga returned.

use std::{any::TypeId, fmt};

use super::list::decode_list;
use super::params::sealed::Sealed;
use crate::step::{
    Args, FromStep, Locked, NeededOutput, Needs, SemanticLock, Signal, Signaled, Step, StepError, StepOutputs,
};

/// The output of an earlier step, as a parameter of a later step or of a closure of the saga's definition.
///
/// `Output<charge_card>` names the step by its function. In a test, write `Output(payment)`.
///
/// A step in an arm of a choice may not run, so after the choice its output is an `Option<Output<charge_card>>`.
//
// The bound holds for each step. Because it is here, rustc does not ask for the size of an `Output` whose `T` is no step,
// which would be more errors beside the first one.
pub struct Output<T: Step>(pub T::Output)
where
    T::Output: Sized;

/// The outputs of an earlier [`for_each`](crate::saga::StepBuilder::for_each) step, one per item, in the order of its
/// list.
///
/// `Outputs<pack_parcel>` is a parameter like [`Output`]. In a test, write `Outputs(vec![..])`.
pub struct Outputs<T: Step>(pub Vec<T::Output>);

/// A parameter that reads outputs of earlier steps: [`Output`], [`Outputs`], [`Signaled`], [`Locked`], or an `Option` of one
/// of them if the step is in an arm of a choice.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not read from an earlier step of the saga",
    label = "no output of a step",
    note = "behind the saga's input, a closure takes `Output<step>`, `Outputs<step>` of a `for_each` step, `Signaled<signal>`, or an `Option` of one of them"
)]
pub trait FromOutputs: Sealed + Sized {
    #[doc(hidden)]
    fn needed() -> NeededOutput;

    #[doc(hidden)]
    fn from_outputs(outputs: &StepOutputs) -> Result<Self, OutputError>;
}

/// Why the output of a step cannot be read.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputError {
    /// The step has no recorded output.
    Missing(&'static str),
    /// Its recorded output does not decode, and why.
    Unreadable(&'static str, String),
}

impl<T: Step> FromOutputs for Output<T> {
    fn needed() -> NeededOutput {
        NeededOutput { step: T::NAME, type_id: TypeId::of::<T>(), is_list: false, is_optional: false, is_lock: false }
    }

    fn from_outputs(outputs: &StepOutputs) -> Result<Self, OutputError> {
        let output = T::OUTPUT.decode(recorded(outputs, T::NAME)?);
        output.map(Self).map_err(|error| OutputError::Unreadable(T::NAME, error.to_string()))
    }
}

impl<T: Step> FromOutputs for Outputs<T> {
    fn needed() -> NeededOutput {
        NeededOutput { is_list: true, ..Output::<T>::needed() }
    }

    fn from_outputs(outputs: &StepOutputs) -> Result<Self, OutputError> {
        let list = decode_list(T::OUTPUT, recorded(outputs, T::NAME)?);
        list.map(Self).map_err(|error| OutputError::Unreadable(T::NAME, error.to_string()))
    }
}

impl<T: Signal> FromOutputs for Signaled<T> {
    fn needed() -> NeededOutput {
        Output::<Self>::needed()
    }

    fn from_outputs(outputs: &StepOutputs) -> Result<Self, OutputError> {
        Output::<Self>::from_outputs(outputs).map(|Output(signal)| Self(signal))
    }
}

impl<L: SemanticLock> FromOutputs for Locked<L> {
    fn needed() -> NeededOutput {
        NeededOutput { is_lock: true, ..Output::<Self>::needed() }
    }

    fn from_outputs(outputs: &StepOutputs) -> Result<Self, OutputError> {
        Output::<Self>::from_outputs(outputs).map(|Output(entities)| Self::new(entities))
    }
}

impl<P: FromOutputs> FromOutputs for Option<P> {
    fn needed() -> NeededOutput {
        NeededOutput { is_optional: true, ..P::needed() }
    }

    fn from_outputs(outputs: &StepOutputs) -> Result<Self, OutputError> {
        let step = P::needed().step;
        if outputs.get(step).is_none() && outputs.is_passed_by(step) {
            return Ok(None);
        }
        P::from_outputs(outputs).map(Some)
    }
}

fn recorded<'a>(outputs: &'a StepOutputs, step: &'static str) -> Result<&'a [u8], OutputError> {
    outputs.get(step).map(|output| &**output).ok_or(OutputError::Missing(step))
}

// One implementation a type, and none for all that read outputs: then the compiler names a type that is no parameter,
// and not the trait behind it.
macro_rules! parameters_of_steps {
    ($([$($generics:tt)*] $P:ty;)*) => {$(
        impl<$($generics)*> Sealed for $P {}

        impl<$($generics)*> FromStep for $P {
            fn needs(needs: &mut Needs) {
                needs.outputs.push(<Self as FromOutputs>::needed());
            }

            fn from_step(args: Args<'_>) -> Result<Self, StepError> {
                Self::from_outputs(args.outputs).map_err(|error| match error {
                    OutputError::Missing(step) => {
                        StepError::unreadable(format!("the step `{step}` has no recorded output"))
                    }
                    OutputError::Unreadable(step, error) => {
                        StepError::unreadable(format!("the recorded output of the step `{step}` cannot be read: {error}"))
                    }
                })
            }
        }
    )*};
}

parameters_of_steps! {
    [T: Step] Output<T>;
    [T: Step] Outputs<T>;
    [T: Signal] Signaled<T>;
    [L: SemanticLock] Locked<L>;
    [P: FromOutputs] Option<P>;
}

/// In the words of a closure of the definition.
impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(step) => write!(f, "the output of `{step}` is not there"),
            Self::Unreadable(step, error) => write!(f, "the output of `{step}`: {error}"),
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

impl<T: Step<Output: fmt::Debug>> fmt::Debug for Outputs<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Outputs").field(&self.0).finish()
    }
}

impl<T: Step<Output: Clone>> Clone for Outputs<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
