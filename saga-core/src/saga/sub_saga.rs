use crate::step::{Codec, Payload, Step, codec};

/// A saga as a step of another one.
///
/// The type that implements it names the step, as the name of a function does for other steps: `Output<Shipping>` is what
/// the sub-saga [returned](super::SagaBuilder::returns).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a saga step",
    label = "neither a function with `#[saga_step]` nor a type that implements `SubSaga`",
    note = "a step is the name of an `async fn` with `#[saga_core::saga_step]`: `.step::<charge_card>()`, `Output<charge_card>`"
)]
pub trait SubSaga: Send + Sync + 'static {
    /// The name of the step: `[a-z0-9-]`, up to 40 bytes, different from all other steps. The key of the sub-saga is
    /// `key>name`.
    const NAME: &'static str;
    /// The input of the sub-saga.
    type Input: Payload;
    /// The result of the sub-saga, which is the output of the step.
    type Output: Payload;
}

#[diagnostic::do_not_recommend]
impl<T: SubSaga> Step for T {
    type Input = <T as SubSaga>::Input;
    type Output = <T as SubSaga>::Output;

    const NAME: &'static str = <T as SubSaga>::NAME;
    const INPUT: Codec<Self::Input> = codec::<Self::Input>();
    const OUTPUT: Codec<Self::Output> = codec::<Self::Output>();
}
