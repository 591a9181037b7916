use crate::step::{Codec, Payload, Step, codec};

/// A saga as a step of another one.
///
/// What implements it stands for the step, as the name of a function does elsewhere: `Output<shipping>` is its result.
pub trait SubSaga: Send + Sync + 'static {
    /// The name of the step: `[a-z0-9-]`, up to 40 bytes, and none of another step. The saga's key is `key>name`.
    const NAME: &'static str;
    /// What the saga is started with.
    type Input: Payload;
    /// The step of that saga whose output is the result.
    type Result: Step;
}

#[diagnostic::do_not_recommend]
impl<T: SubSaga> Step for T {
    type Input = <T as SubSaga>::Input;
    type Output = <T::Result as Step>::Output;

    const NAME: &'static str = <T as SubSaga>::NAME;
    const INPUT: Codec<Self::Input> = codec::<Self::Input>();
    const OUTPUT: Codec<Self::Output> = T::Result::OUTPUT;
}
