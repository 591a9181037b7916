//! How the compensation of a step fits the step.

use std::marker::PhantomData;

use crate::step::{Compensation, Step, UndoOf};

/// The input of a compensation fits the input `I` of its step: they are the same type.
#[diagnostic::on_unimplemented(
    message = "the step's input is `{I}`, but its compensation takes `{Self}`",
    label = "takes `{Self}`",
    note = "a compensation takes the step's input, then, if it needs it, the step's output: write `{I}` as its first by-value parameter"
)]
#[doc(hidden)]
pub trait UndoInput<I>: Sized {
    fn of(input: I) -> Self;
}

impl<I> UndoInput<I> for I {
    fn of(input: I) -> Self {
        input
    }
}

/// The output that a compensation takes fits the output `O` of its step: it is `O` or `Option<O>`.
///
/// The types decide, not what was written, so a step that itself returns an `Option` is no special case.
/// An unknown output never passes through the encoded form, where `()` and `None` look alike.
#[diagnostic::on_unimplemented(
    message = "the step returns `{O}`, but its compensation takes `{Self}`",
    label = "takes `{Self}`",
    note = "take `{O}`, or `Option<{O}>` if it can also undo a call whose outcome is unknown, or leave the output out"
)]
pub trait UndoOutput<O>: Sized {
    /// Whether the compensation can run when it is not known if the step took effect.
    const WHEN_UNKNOWN: bool;

    /// What the compensation is called with, or `None` if it cannot be called without a known output.
    fn of(known: Option<O>) -> Option<Self>;
}

impl<O> UndoOutput<O> for O {
    const WHEN_UNKNOWN: bool = false;

    fn of(known: Option<O>) -> Option<Self> {
        known
    }
}

impl<O> UndoOutput<O> for Option<O> {
    const WHEN_UNKNOWN: bool = true;

    fn of(known: Option<O>) -> Option<Self> {
        Some(known)
    }
}

/// What a compensation has as its second by-value parameter, if anything.
pub trait UndoValue<O>: Sized {
    /// Whether the compensation can run when it is not known if the step took effect.
    const WHEN_UNKNOWN: bool;

    /// What the compensation is called with, or `None` if it cannot be called without a known output.
    fn of(known: Option<O>) -> Option<Self>;
}

/// The compensation takes the step's output as an `X`.
#[derive(Debug)]
pub struct Given<X>(pub X);

/// The compensation leaves the step's output out, so it runs for unknown outcomes too.
#[derive(Debug)]
pub struct Ignored;

impl<O, X: UndoOutput<O>> UndoValue<O> for Given<X> {
    const WHEN_UNKNOWN: bool = X::WHEN_UNKNOWN;

    fn of(known: Option<O>) -> Option<Self> {
        X::of(known).map(Given)
    }
}

impl<O> UndoValue<O> for Ignored {
    const WHEN_UNKNOWN: bool = true;

    fn of(_known: Option<O>) -> Option<Self> {
        Some(Self)
    }
}

/// Proves that the compensation `C` takes what the step `T` took, and what it returned, an `Option` of that, or nothing
/// of it.
///
/// This is the one place that asks for it, so that a compensation that does not fit is one error.
#[doc(hidden)]
pub const fn undone_by<T, C>() -> UndoOf<T>
where
    T: Step,
    C: Compensation<Input: UndoInput<T::Input>, Output: UndoValue<T::Output>>,
{
    UndoOf {
        options: C::OPTIONS,
        needs: C::NEEDS,
        when_unknown: <C::Output as UndoValue<T::Output>>::WHEN_UNKNOWN,
        arguments: |input, output| {
            let output = <C::Output as UndoValue<T::Output>>::of(output)?;
            Some(Box::new((<C::Input as UndoInput<T::Input>>::of(input), output)))
        },
        step: PhantomData,
    }
}
