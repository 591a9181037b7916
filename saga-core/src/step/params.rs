use std::any::TypeId;

use super::{Args, Compensation, Step, StepError};

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for super::super::State<T> {}
    impl<T: super::super::Step> Sealed for super::super::Output<T> {}
}

/// A parameter that the runtime reads for a step: [`State`](super::State) or [`Output`](super::Output).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no parameter that the runtime can give to a step",
    label = "not a parameter of a step",
    note = "besides the connection, `&StepContext` and the input, a step takes `State<T>` and `Output<step>`"
)]
pub trait FromStep: sealed::Sealed + Sized + Send {
    /// Adds what this parameter needs.
    fn needs(needs: &mut Needs);

    /// Reads the parameter.
    ///
    /// # Errors
    ///
    /// What it needs is not there or cannot be read; the error is of the kind
    /// [`Stuck`](super::StepErrorKind::Stuck), never a rejection.
    fn from_step(args: Args<'_>) -> Result<Self, StepError>;
}

/// All such parameters of a step: a tuple, in the order of its signature.
pub trait Params: Sized + Send {
    /// Adds what the parameters need.
    fn needs(needs: &mut Needs);

    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// As [`FromStep::from_step`].
    fn read(args: Args<'_>) -> Result<Self, StepError>;
}

/// What the parameters of a step need, so that a saga can be checked when it is built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The application's values, one for each `State<T>`.
    pub states: Vec<NeededState>,
    /// The earlier steps, one for each `Output<step>`.
    pub outputs: Vec<NeededOutput>,
}

impl Needs {
    /// What the parameters `P` need.
    pub fn of<P: Params>() -> Self {
        let mut needs = Self::default();
        P::needs(&mut needs);
        needs
    }
}

/// A `State<T>` parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeededState {
    /// Of `T`.
    pub type_id: TypeId,
    /// The name of `T`, for messages.
    pub type_name: &'static str,
}

/// An `Output<step>` parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeededOutput {
    /// The name of the step.
    pub step: &'static str,
    /// Of the step's type: two steps of one name are not the same step.
    pub type_id: TypeId,
}

/// Reads the parameters of a step.
#[doc(hidden)]
pub fn read_step<T: Step>(args: Args<'_>) -> Result<T::Params, StepError> {
    T::Params::read(args)
}

/// Reads the parameters of a compensation.
#[doc(hidden)]
pub fn read_compensation<C: Compensation>(args: Args<'_>) -> Result<C::Params, StepError> {
    C::Params::read(args)
}

macro_rules! params_of_tuples {
    ($(($($P:ident)*))*) => {$(
        impl<$($P: FromStep),*> Params for ($($P,)*) {
            #[allow(unused_variables, reason = "the empty tuple needs nothing")]
            fn needs(needs: &mut Needs) {
                $($P::needs(needs);)*
            }

            #[allow(unused_variables, clippy::unused_unit, reason = "the empty tuple reads nothing")]
            fn read(args: Args<'_>) -> Result<Self, StepError> {
                Ok(($($P::from_step(args)?,)*))
            }
        }
    )*};
}

params_of_tuples! {
    ()
    (A)
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E F)
    (A B C D E F G)
    (A B C D E F G H)
    (A B C D E F G H I)
    (A B C D E F G H I J)
    (A B C D E F G H I J K)
    (A B C D E F G H I J K L)
}
