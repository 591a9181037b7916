//! What a step demands of the saga's store, in a form for which the compiler can say what to do.

use crate::step::{CompensationHandler, Step, Undo, undo};
use crate::store::Store;

/// That the connection of the saga's store is `C`: the bound of a step, or of a compensation, that takes `&mut C`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the connection of the saga's store is `{Self}`, and this takes `&mut {C}`",
    label = "is of another store than the saga",
    note = "take `&mut {Self}`, or choose the store whose connection is `{C}`",
    note = "a step or a compensation that takes `&mut S::Conn`, with a type parameter `S: Store`, or no connection at all, runs on every store"
)]
pub trait ConnectionIs<C> {
    /// The same connection.
    fn connection(&mut self) -> &mut C;
}

impl<C> ConnectionIs<C> for C {
    fn connection(&mut self) -> &mut C {
        self
    }
}

/// That a store runs the compensation `C`: the bound of a step that `C` undoes.
///
/// The store is the type that implements it, so that a `C` that is no compensation is reported at its name alone.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the compensation `{C}` does not run on the saga's store `{Self}`",
    label = "its compensation is of another store than the saga",
    note = "let `{C}` take the `&mut` connection of `{Self}`, as the step does, or none"
)]
pub trait RunsCompensation<C>: Store + Sized {
    /// How `C` undoes the step `T`.
    fn undo<T: Step>() -> Undo<Self, T>;
}

#[diagnostic::do_not_recommend]
impl<S: Store, C: CompensationHandler<S>> RunsCompensation<C> for S {
    fn undo<T: Step>() -> Undo<Self, T> {
        undo::<S, T, C>()
    }
}
