use crate::env::BoxFuture;

use crate::step::{Args, Needs, StepError, StepOptions};

/// What the other system knows about a call, found by the key of the call.
///
/// ```
/// # use saga_core::{Resolved, State, StepContext, StepError, saga_resolution, saga_step};
/// # #[derive(Clone)]
/// # struct Gateway;
/// # impl Gateway {
/// #     async fn charge(&self, _key: &str, _cents: u64) -> Result<String, std::io::Error> { Ok(String::new()) }
/// #     async fn find(&self, _key: &str) -> Result<Option<String>, std::io::Error> { Ok(None) }
/// # }
/// #[saga_step(no_compensation, resolve = find_charge)]
/// async fn charge_card(ctx: &StepContext, cents: u64, State(gateway): State<Gateway>) -> Result<String, StepError> {
///     Ok(gateway.charge(ctx.key(), cents).await?)
/// }
///
/// #[saga_resolution]
/// async fn find_charge(
///     ctx: &StepContext,
///     _cents: u64,
///     State(gateway): State<Gateway>,
/// ) -> Result<Resolved<String>, StepError> {
///     Ok(gateway.find(ctx.key()).await?.map_or(Resolved::NotDone, Resolved::Done))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved<T> {
    /// The call took effect, and this is the output of the step.
    Done(T),
    /// The other system has not seen the call. The runtime then calls the step. If the saga is compensating, or no attempt
    /// is left, the runtime asks once more after the settle time, and the step then counts as not done.
    NotDone,
    /// The outcome is not known yet: ask again later. This counts as an attempt without an answer.
    Pending,
}

/// The resolution of a step. `#[saga_resolution]` implements it for a type with the name of the function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resolution",
    label = "no function of this name carries `#[saga_resolution]`",
    note = "annotate the `async fn` that asks the other side what became of the step with `#[saga_core::saga_resolution]`"
)]
pub trait Resolution: Sized + Send + Sync + 'static {
    /// The input of the step that it asks about.
    type Input: Send + 'static;
    /// The output of that step.
    type Output: Send + 'static;

    /// What the parameters need that the runtime reads, such as [`State`](crate::step::State) and [`Output`](crate::step::Output).
    #[doc(hidden)]
    const NEEDS: fn(&mut Needs) = |_| {};
    /// What the attribute set. The attempts are those that asking may take beyond the step's own.
    #[doc(hidden)]
    const OPTIONS: StepOptions = StepOptions::DEFAULT;

    /// The function.
    #[doc(hidden)]
    fn resolver() -> ResolveFn<Self>;
}

/// The function of a resolution.
pub type ResolveFn<R> = for<'a> fn(
    Args<'a>,
    <R as Resolution>::Input,
) -> BoxFuture<'a, Result<Resolved<<R as Resolution>::Output>, StepError>>;

/// What a resolution returns when it succeeds: [`Resolved<T>`], where the step returns `T`.
#[diagnostic::on_unimplemented(
    message = "a resolution says what became of a step, and `{Self}` does not",
    label = "no `Resolved<..>`",
    note = "return `Result<Resolved<T>, StepError>`, where the step returns `T`: `Resolved::Done(output)`, `Resolved::NotDone` or `Resolved::Pending`"
)]
#[doc(hidden)]
pub trait ResolvedValue {
    type Value: Send + 'static;
}

#[diagnostic::do_not_recommend]
impl<T: Send + 'static> ResolvedValue for Resolved<T> {
    type Value = T;
}
