use std::{any::TypeId, any::type_name};

use super::params::sealed::Sealed;
use crate::step::{Args, FromStep, NeededState, Needs, StepError};

/// A value of the application, such as a client of a payment gateway, as a parameter of a step.
///
/// Every call gets a clone of the value that was given to the runtime's builder. In a test, write `State(gateway)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State<T>(pub T);

/// What a [`State`] can hold. One trait for the four bounds, so that a type without them is one error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken as `State`",
    label = "`{Self}` is not `Clone + Send + Sync + 'static`",
    note = "each call gets a clone of the value: derive `Clone`, or put the value into an `Arc`; bound a type parameter by `Clone + Send + Sync + 'static`"
)]
#[doc(hidden)]
pub trait StateValue: Clone + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + Sync + 'static> StateValue for T {}

impl<T> Sealed for State<T> {}

impl<T: StateValue> FromStep for State<T> {
    fn needs(needs: &mut Needs) {
        needs.states.push(NeededState { type_id: TypeId::of::<T>(), type_name: type_name::<T>() });
    }

    fn from_step(args: Args<'_>) -> Result<Self, StepError> {
        args.states.get::<T>().map(State).ok_or_else(|| {
            StepError::unreadable(format!("the runtime was built without a state of type `{}`", type_name::<T>()))
        })
    }
}
