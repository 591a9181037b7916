use std::fmt;

use crate::env::BoxFuture;
use crate::store::Store;

use crate::step::{Args, Batch, BatchResults, Compensate, Compensation, CompensationHandler, Step, StepError};

/// A step that can run on the store `S`.
///
/// A step that takes `&mut C` runs on every store whose connection is `C`; one that takes no
/// connection runs on every store. Its compensation has to run on the same store.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no step that this saga can run",
    label = "no step for the saga's store",
    note = "a step is the name of a function with `#[saga_step]`; it runs on the stores whose connection its `&mut` parameter names, and on every store if it takes none"
)]
pub trait Handler<S: Store>: Step {
    /// How the step runs.
    #[doc(hidden)]
    fn handler() -> Run<S, Self>;

    /// How the step is undone.
    #[doc(hidden)]
    fn undo() -> Undo<S, Self> {
        Undo::Nothing
    }
}

/// How a step runs.
#[non_exhaustive]
pub enum Run<S: Store, T: Step> {
    /// In a transaction of the store: what it writes commits together with the record that it ran.
    Transaction(TransactionFn<S, T>),
    /// In a transaction of the store, together with the same step of other sagas.
    Batch(BatchFn<S, T>),
    /// Outside any transaction.
    External(ExternalFn<T>),
    /// In another service, which gets a command and answers it.
    Remote {
        /// The service that hosts the step.
        service: &'static str,
    },
}

/// The function of a step that runs in a transaction.
pub type TransactionFn<S, T> = for<'a> fn(
    &'a mut <S as Store>::Conn,
    Args<'a>,
    <T as Step>::Input,
) -> BoxFuture<'a, Result<<T as Step>::Output, StepError>>;

/// The function of a step that runs in a transaction for many sagas at once. What is read of the call is that of the first.
pub type BatchFn<S, T> = for<'a> fn(
    &'a mut <S as Store>::Conn,
    Args<'a>,
    Batch<<T as Step>::Input>,
) -> BoxFuture<'a, Result<BatchResults<<T as Step>::Output>, StepError>>;

/// The function of a step that runs outside any transaction.
pub type ExternalFn<T> =
    for<'a> fn(Args<'a>, <T as Step>::Input) -> BoxFuture<'a, Result<<T as Step>::Output, StepError>>;

impl<S: Store, T: Step> Clone for Run<S, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Store, T: Step> Copy for Run<S, T> {}

impl<S: Store, T: Step> fmt::Debug for Run<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transaction(_) => "Transaction",
            Self::Batch(_) => "Batch",
            Self::External(_) => "External",
            Self::Remote { .. } => "Remote",
        })
    }
}

/// How a step is undone: its compensation, called with what the step took and returned.
#[non_exhaustive]
pub enum Undo<S: Store, T: Step> {
    /// In a transaction of the store.
    Transaction(UndoTransactionFn<S, T>),
    /// Outside any transaction.
    External(UndoExternalFn<T>),
    /// In the service that hosts the step; its record decides whether there is anything to undo.
    Remote,
    /// The step has no compensation.
    Nothing,
}

/// The undoing of a step in a transaction; the output is `None` when it is not known whether the step took effect.
pub type UndoTransactionFn<S, T> = for<'a> fn(
    &'a mut <S as Store>::Conn,
    Args<'a>,
    <T as Step>::Input,
    Option<<T as Step>::Output>,
) -> BoxFuture<'a, Result<(), StepError>>;

/// The undoing of a step outside any transaction; the output is `None` when it is not known whether the step took effect.
pub type UndoExternalFn<T> =
    for<'a> fn(Args<'a>, <T as Step>::Input, Option<<T as Step>::Output>) -> BoxFuture<'a, Result<(), StepError>>;

impl<S: Store, T: Step> Clone for Undo<S, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Store, T: Step> Copy for Undo<S, T> {}

impl<S: Store, T: Step> fmt::Debug for Undo<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transaction(_) => "Transaction",
            Self::External(_) => "External",
            Self::Remote => "Remote",
            Self::Nothing => "Nothing",
        })
    }
}

/// How the compensation `C` undoes the step `T`, whose [`UNDO`](Step::UNDO) proves that it fits.
#[doc(hidden)]
pub fn undo<S: Store, T: Step, C: CompensationHandler<S>>() -> Undo<S, T> {
    match C::handler() {
        Compensate::Transaction(_) => Undo::Transaction(|conn, args, input, output| {
            Box::pin(async move {
                let (input, output) = arguments::<T, C>(input, output)?;
                match C::handler() {
                    Compensate::Transaction(compensate) => compensate(conn, args, input, output).await,
                    Compensate::External(compensate) => compensate(args, input, output).await,
                }
            })
        }),
        Compensate::External(_) => Undo::External(|args, input, output| {
            Box::pin(async move {
                let (input, output) = arguments::<T, C>(input, output)?;
                match C::handler() {
                    Compensate::External(compensate) => compensate(args, input, output).await,
                    Compensate::Transaction(_) => Err(StepError::unreadable("its compensation changed its kind")),
                }
            })
        }),
    }
}

fn arguments<T: Step, C: Compensation>(
    input: T::Input,
    output: Option<T::Output>,
) -> Result<(C::Input, C::Output), StepError> {
    let arguments = T::UNDO.and_then(|undo| undo.arguments::<C>(input, output));
    arguments.map(|arguments| *arguments).ok_or_else(|| {
        StepError::unreadable("its outcome is unknown, and its compensation needs its output; let it take `Option<..>`")
    })
}
