use std::fmt;
use std::marker::PhantomData;

use super::{Args, BoxFuture, Needs, Step, StepError, StepOptions};

/// What the other side knows of a call, by the key that the call was made with.
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
    /// It took effect, and this is what the step returns.
    Done(T),
    /// The other side has seen nothing of it. It is called then, or, where the saga goes back or no attempt is left,
    /// counts as not done once a call that is still on its way must have landed.
    NotDone,
    /// It is not known yet: ask again later. It counts as an attempt without an answer.
    Pending,
}

/// What says how a step turned out, implemented by `#[saga_resolution]` for a type that has the function's name.
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

    /// What the parameters need that the runtime reads, such as [`State`](super::State) and [`Output`](super::Output).
    #[doc(hidden)]
    const NEEDS: fn(&mut Needs) = |_| {};
    /// What the attribute set. The attempts are those that asking may take beyond the step's own.
    #[doc(hidden)]
    const OPTIONS: StepOptions = StepOptions::DEFAULT;

    /// The function.
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

/// What is known of a step's resolution without naming its type, so that a step may be more visible than the function
/// that asks about it.
pub struct ResolveOf<T: Step> {
    options: StepOptions,
    needs: fn(&mut Needs),
    resolve: AskFn<T>,
    step: PhantomData<fn(T)>,
}

type AskFn<T> =
    for<'a> fn(Args<'a>, <T as Step>::Input) -> BoxFuture<'a, Result<Resolved<<T as Step>::Output>, StepError>>;

impl<T: Step> ResolveOf<T> {
    /// What the attribute of the resolution set.
    pub const fn options(&self) -> StepOptions {
        self.options
    }

    /// Adds what the parameters of the resolution need.
    pub fn needs(&self, needs: &mut Needs) {
        (self.needs)(needs);
    }

    pub(crate) const fn function(&self) -> AskFn<T> {
        self.resolve
    }
}

impl<T: Step> Clone for ResolveOf<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Step> Copy for ResolveOf<T> {}

impl<T: Step> fmt::Debug for ResolveOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolveOf").field("options", &self.options).finish_non_exhaustive()
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
