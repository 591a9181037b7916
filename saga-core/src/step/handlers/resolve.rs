//! How the resolution of a step fits the step.

use std::marker::PhantomData;

use crate::step::{Resolution, ResolveOf, Resolved, Step};

/// The input of a resolution fits the input `I` of its step: they are the same type.
#[diagnostic::on_unimplemented(
    message = "the step's input is `{I}`, but its resolution takes `{Self}`",
    label = "takes `{Self}`",
    note = "a resolution takes the step's input: write `{I}` as its by-value parameter"
)]
#[doc(hidden)]
pub trait ResolveInput<I>: Sized {
    fn of(input: I) -> Self;
}

impl<I> ResolveInput<I> for I {
    fn of(input: I) -> Self {
        input
    }
}

/// What a resolution found fits the output `O` of its step: they are the same type.
#[diagnostic::on_unimplemented(
    message = "the step returns `{O}`, but its resolution finds `{Self}`",
    label = "finds `{Self}`",
    note = "return `Result<Resolved<{O}>, StepError>`"
)]
#[doc(hidden)]
pub trait ResolveOutput<O>: Sized {
    fn into_output(self) -> O;
}

impl<O> ResolveOutput<O> for O {
    fn into_output(self) -> O {
        self
    }
}

/// Proves that the resolution `R` takes what the step `T` takes, and finds what it returns.
#[doc(hidden)]
pub const fn resolved_by<T, R>() -> ResolveOf<T>
where
    T: Step,
    R: Resolution<Input: ResolveInput<T::Input>, Output: ResolveOutput<T::Output>>,
{
    ResolveOf {
        options: R::OPTIONS,
        needs: R::NEEDS,
        resolve: |args, input| {
            Box::pin(async move {
                let input = <R::Input as ResolveInput<T::Input>>::of(input);
                Ok(match R::resolver()(args, input).await? {
                    Resolved::Done(found) => Resolved::Done(found.into_output()),
                    Resolved::NotDone => Resolved::NotDone,
                    Resolved::Pending => Resolved::Pending,
                })
            })
        },
        step: PhantomData,
    }
}
