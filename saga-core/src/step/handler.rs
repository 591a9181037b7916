use std::{fmt, pin::Pin};

use crate::store::Store;

use super::{Args, CompensationHandler, Step, StepError};

/// A boxed future that may be sent between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A step that can run on the store `S`.
///
/// A step that takes `&mut C` runs on every store whose connection is `C`; one that takes no
/// connection runs on every store. Its compensation has to run on the same store.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no step that this saga can run",
    label = "no step for the saga's store",
    note = "a step is the name of a function with `#[saga_step]`; it runs on the stores whose connection its `&mut` parameter names, and on every store if it takes none"
)]
pub trait Handler<S: Store>: Step<Compensation: CompensationHandler<S>> {
    /// How the step runs.
    fn handler() -> Run<S, Self>;
}

/// How a step runs.
#[non_exhaustive]
pub enum Run<S: Store, T: Step> {
    /// In a transaction of the store: what it writes commits together with the record that it ran.
    Transaction(TransactionFn<S, T>),
    /// Outside any transaction.
    External(ExternalFn<T>),
}

/// The function of a step that runs in a transaction.
pub type TransactionFn<S, T> = for<'a> fn(
    &'a mut <S as Store>::Conn,
    Args<'a>,
    <T as Step>::Input,
) -> BoxFuture<'a, Result<<T as Step>::Output, StepError>>;

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
            Self::External(_) => "External",
        })
    }
}
