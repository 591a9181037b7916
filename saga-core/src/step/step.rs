use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use super::{Args, Codec, Compensation, Needs, Resolved, StepError, StepOptions};
use crate::env::BoxFuture;
use crate::store::Entity;

/// A step of a saga, implemented by `#[saga_step]` for a type that has the function's name.
///
/// It says what the step is; [`Handler`](super::Handler) says how it runs on a store.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a saga step",
    label = "no function of this name carries `#[saga_step]`",
    note = "a step is the name of an `async fn` with `#[saga_core::saga_step]`: `.step::<charge_card>()`, `Output<charge_card>`"
)]
pub trait Step: Sized + Send + Sync + 'static {
    /// The input of the step: the saga's input, or the result of a mapping.
    type Input: Send + 'static;
    /// The output of the step. It is stored in the step record.
    type Output: Send + 'static;

    /// The name under which the step is recorded: `[a-z0-9-]`, up to 40 bytes.
    const NAME: &'static str;
    /// The options of the attribute.
    #[doc(hidden)]
    const OPTIONS: StepOptions = StepOptions::DEFAULT;
    /// What the parameters need that the runtime reads, such as [`State`](super::State) and [`Output`](super::Output).
    #[doc(hidden)]
    const NEEDS: fn(&mut Needs) = |_| {};
    /// How the input is stored.
    #[doc(hidden)]
    const INPUT: Codec<Self::Input>;
    /// How the output is stored.
    #[doc(hidden)]
    const OUTPUT: Codec<Self::Output>;
    /// What a call of the step or of its compensation locks; `None` for a step without a lock.
    #[doc(hidden)]
    const LOCK: Option<EntitiesOf<Self>> = None;
    /// What is known of the compensation; `None` for a step without one.
    #[doc(hidden)]
    const UNDO: Option<UndoOf<Self>> = None;
    /// What is known of the resolution, which asks the other side what became of the step; `None` for a step without one.
    #[doc(hidden)]
    const RESOLVE: Option<ResolveOf<Self>> = None;
}

/// The entities that a step locks, of its input. `#[saga_step(lock = ..)]` makes one of a closure.
#[doc(hidden)]
pub type EntitiesOf<T> = fn(&<T as Step>::Input) -> Vec<Entity>;

/// The input of a step that takes the saga's input, which is `I`.
#[diagnostic::on_unimplemented(
    message = "the input of this saga is `{I}`, and the step takes `{Self}`",
    label = "takes `{Self}`",
    note = "make the step's input of the saga's: `.step_from::<step, _>(|input: &{I}| ..)`, or also of an earlier step's output: `.step_from::<step, _>(|input: &{I}, Output(output): Output<earlier>| ..)`"
)]
pub trait InputOf<I> {}

#[diagnostic::do_not_recommend]
impl<I> InputOf<I> for I {}

/// What is known of a step's compensation without a store: its options, what it needs, and how what the step took and
/// returned becomes what it takes.
///
/// It does not name the compensation's type, so that a step may be more visible than the function that undoes it.
pub struct UndoOf<T: Step> {
    pub(super) options: StepOptions,
    pub(super) needs: fn(&mut Needs),
    pub(super) when_unknown: bool,
    pub(super) arguments: ArgumentsFn<T>,
    pub(super) step: PhantomData<fn(T)>,
}

/// Gives a pair of the compensation's input and output, whose types only the caller knows.
type ArgumentsFn<T> = fn(<T as Step>::Input, Option<<T as Step>::Output>) -> Option<Box<dyn Any + Send>>;

impl<T: Step> UndoOf<T> {
    /// What the attribute of the compensation set.
    pub const fn options(&self) -> StepOptions {
        self.options
    }

    /// Adds what the parameters of the compensation need.
    pub fn needs(&self, needs: &mut Needs) {
        (self.needs)(needs);
    }

    /// Whether the compensation can run when it is not known if the step took effect.
    pub const fn when_unknown(&self) -> bool {
        self.when_unknown
    }

    /// What the compensation `C` is called with; `None` if it takes the output itself and that is not known, or if it
    /// is another one than the step named.
    pub(super) fn arguments<C: Compensation>(
        &self,
        input: T::Input,
        output: Option<T::Output>,
    ) -> Option<Box<(C::Input, C::Output)>> {
        (self.arguments)(input, output)?.downcast().ok()
    }
}

impl<T: Step> Clone for UndoOf<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Step> Copy for UndoOf<T> {}

impl<T: Step> fmt::Debug for UndoOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UndoOf")
            .field("options", &self.options)
            .field("when_unknown", &self.when_unknown)
            .finish_non_exhaustive()
    }
}

/// What is known of a step's resolution without naming its type, so that a step may be more visible than the function
/// that asks about it.
pub struct ResolveOf<T: Step> {
    pub(super) options: StepOptions,
    pub(super) needs: fn(&mut Needs),
    pub(super) resolve: AskFn<T>,
    pub(super) step: PhantomData<fn(T)>,
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
