use std::fmt;

use super::{Compensation, Step};

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

type CompensationInput<T> = <<T as Step>::Compensation as Compensation>::Input;
type CompensationOutput<T> = <<T as Step>::Compensation as Compensation>::Output;

/// How what a step took and returned becomes what its compensation takes.
pub struct UndoOf<T: Step> {
    input: fn(T::Input) -> CompensationInput<T>,
    output: UndoOutputOf<T>,
}

impl<T: Step> UndoOf<T> {
    /// Both checks of a compensation against its step, [`undo_input`] and [`undo_output`].
    pub const fn new(input: fn(T::Input) -> CompensationInput<T>, output: UndoOutputOf<T>) -> Self {
        Self { input, output }
    }

    /// Whether the compensation can run when it is not known if the step took effect.
    pub const fn when_unknown(&self) -> bool {
        self.output.when_unknown
    }

    /// What the compensation is called with; `None` if it takes the output itself and that is not known.
    pub fn arguments(
        &self,
        input: T::Input,
        output: Option<T::Output>,
    ) -> Option<(CompensationInput<T>, CompensationOutput<T>)> {
        let output = (self.output.of)(output)?;
        Some(((self.input)(input), output))
    }
}

impl<T: Step> fmt::Debug for UndoOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UndoOf").field("when_unknown", &self.when_unknown()).finish_non_exhaustive()
    }
}

/// How a step's output, known or not, becomes what its compensation takes.
pub struct UndoOutputOf<T: Step> {
    when_unknown: bool,
    of: fn(Option<T::Output>) -> Option<CompensationOutput<T>>,
}

impl<T: Step> fmt::Debug for UndoOutputOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UndoOutputOf").field("when_unknown", &self.when_unknown).finish_non_exhaustive()
    }
}

/// Proves that the compensation of `T` takes the input of `T`.
pub const fn undo_input<T>() -> fn(T::Input) -> CompensationInput<T>
where
    T: Step,
    CompensationInput<T>: UndoInput<T::Input>,
{
    <CompensationInput<T> as UndoInput<T::Input>>::of
}

/// Proves that the compensation of `T` takes the output of `T`, an `Option` of it, or nothing of it.
pub const fn undo_output<T>() -> UndoOutputOf<T>
where
    T: Step,
    CompensationOutput<T>: UndoValue<T::Output>,
{
    UndoOutputOf {
        when_unknown: <CompensationOutput<T> as UndoValue<T::Output>>::WHEN_UNKNOWN,
        of: <CompensationOutput<T> as UndoValue<T::Output>>::of,
    }
}
