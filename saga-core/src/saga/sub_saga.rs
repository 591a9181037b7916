use crate::step::{Codec, Payload, Step, codec};

/// A saga as a step of another one.
///
/// The type that implements it names the step, as the name of a function does for other steps: `Output<Shipping>` is its
/// result.
pub trait SubSaga: Send + Sync + 'static {
    /// The name of the step: `[a-z0-9-]`, up to 40 bytes, different from all other steps. The key of the sub-saga is
    /// `key>name`.
    const NAME: &'static str;
    /// The input of the sub-saga.
    type Input: Payload;
    /// The step of the sub-saga whose output is the result.
    type Result: Step;
}

#[diagnostic::do_not_recommend]
impl<T: SubSaga> Step for T {
    type Input = <T as SubSaga>::Input;
    type Output = <T::Result as Step>::Output;
    type Params = ();

    const NAME: &'static str = <T as SubSaga>::NAME;
    const INPUT: Codec<Self::Input> = codec::<Self::Input>();
    const OUTPUT: Codec<Self::Output> = T::Result::OUTPUT;
}
