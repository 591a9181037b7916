use std::fmt;

use crate::env::BoxFuture;
use crate::store::Store;

use crate::step::{Args, Needs, StepError, StepOptions};

/// What undoes a step, implemented by `#[saga_compensation]` for a type that has the function's name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a compensation",
    label = "no function of this name carries `#[saga_compensation]`",
    note = "annotate the `async fn` that undoes the step with `#[saga_core::saga_compensation]`"
)]
pub trait Compensation: Sized + Send + Sync + 'static {
    /// The input of the step that it undoes.
    type Input: Send + 'static;
    /// [`Given<X>`](crate::step::Given) if it takes the step's output, [`Ignored`](crate::step::Ignored) if it leaves that out.
    type Output: Send + 'static;

    /// What the parameters need that the runtime reads, such as [`State`](crate::step::State) and [`Output`](crate::step::Output).
    #[doc(hidden)]
    const NEEDS: fn(&mut Needs) = |_| {};
    /// What the attribute set.
    #[doc(hidden)]
    const OPTIONS: StepOptions = StepOptions::DEFAULT;
}

/// A compensation that can run on the store `S`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no compensation that this saga can run",
    label = "no compensation for the saga's store",
    note = "a compensation is the name of a function with `#[saga_compensation]`; it runs on the stores whose connection its `&mut` parameter names, and on every store if it takes none"
)]
pub trait CompensationHandler<S: Store>: Compensation {
    /// How the compensation runs.
    fn handler() -> Compensate<S, Self>;
}

/// How a compensation runs.
#[non_exhaustive]
pub enum Compensate<S: Store, C: Compensation> {
    /// In a transaction of the store.
    Transaction(CompensateInTransactionFn<S, C>),
    /// Outside any transaction.
    External(CompensateExternalFn<C>),
}

/// The function of a compensation that runs in a transaction.
pub type CompensateInTransactionFn<S, C> = for<'a> fn(
    &'a mut <S as Store>::Conn,
    Args<'a>,
    <C as Compensation>::Input,
    <C as Compensation>::Output,
) -> BoxFuture<'a, Result<(), StepError>>;

/// The function of a compensation that runs outside any transaction.
pub type CompensateExternalFn<C> = for<'a> fn(
    Args<'a>,
    <C as Compensation>::Input,
    <C as Compensation>::Output,
) -> BoxFuture<'a, Result<(), StepError>>;

impl<S: Store, C: Compensation> Clone for Compensate<S, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Store, C: Compensation> Copy for Compensate<S, C> {}

impl<S: Store, C: Compensation> fmt::Debug for Compensate<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transaction(_) => "Transaction",
            Self::External(_) => "External",
        })
    }
}
