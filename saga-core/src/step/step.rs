use super::{Codec, Needs, ResolveOf, StepOptions, UndoOf};

/// A step of a saga, implemented by `#[saga_step]` for a type that has the function's name.
///
/// It says what the step is; [`Handler`](super::Handler) says how it runs on a store.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a saga step",
    label = "no function of this name carries `#[saga_step]`",
    note = "a step is the name of an `async fn` with `#[saga_core::saga_step]`: `.step::<charge_card>()`, `Output<charge_card>`"
)]
pub trait Step: Sized + Send + Sync + 'static {
    /// What the step is given: the saga's input, or what a mapping makes of it.
    type Input: Send + 'static;
    /// What the step returns. It is stored with the record that the step ran.
    type Output: Send + 'static;

    /// The name under which the step is recorded: `[a-z0-9-]`, up to 40 bytes.
    const NAME: &'static str;
    /// What the attribute set.
    const OPTIONS: StepOptions = StepOptions::DEFAULT;
    /// What the parameters need that the runtime reads, such as [`State`](super::State) and [`Output`](super::Output).
    #[doc(hidden)]
    const NEEDS: fn(&mut Needs) = |_| {};
    /// How the input is stored.
    const INPUT: Codec<Self::Input>;
    /// How the output is stored.
    const OUTPUT: Codec<Self::Output>;
    /// What is known of the compensation; `None` for a step without one.
    #[doc(hidden)]
    const UNDO: Option<UndoOf<Self>> = None;
    /// What is known of the resolution, which asks the other side what became of the step; `None` for a step without one.
    #[doc(hidden)]
    const RESOLVE: Option<ResolveOf<Self>> = None;
}

/// The input of a step that takes the saga's input, which is `I`.
#[diagnostic::on_unimplemented(
    message = "the input of this saga is `{I}`, and the step takes `{Self}`",
    label = "takes `{Self}`",
    note = "make the step's input of the saga's: `.step_from::<step, _>(|input: &{I}| ..)`, or also of an earlier step's output: `.step_from::<step, _>(|input: &{I}, Output(output): Output<earlier>| ..)`"
)]
pub trait InputOf<I> {}

#[diagnostic::do_not_recommend]
impl<I> InputOf<I> for I {}
