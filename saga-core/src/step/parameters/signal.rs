use serde::{Serialize, de::DeserializeOwned};

use crate::step::{Codec, Step, StepOptions, codec};

/// A message from outside that a saga can wait for: an approval, the call of a webhook. See
/// [`SagaBuilder::wait_for`](crate::saga::SagaBuilder::wait_for).
///
/// ```
/// use saga_core::Signal;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// enum Approval { Granted { by: String }, Declined }
///
/// impl Signal for Approval {
///     const NAME: &'static str = "approval";
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a signal",
    label = "no saga can wait for it",
    note = "give it a name: `impl saga_core::Signal for {Self} {{ const NAME: &'static str = \"..\"; }}`"
)]
pub trait Signal: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name of the step that waits for it: `[a-z0-9-]`, up to 40 bytes.
    const NAME: &'static str;
}

/// The signal that a saga waited for, as a parameter of a later step or of a closure of the saga's definition: the message
/// that arrived, or the default if none arrived in time.
///
/// If the wait is in an arm of a choice, the parameter is an `Option<Signaled<Approval>>`. In a test, write
/// `Signaled(approval)`. As a [`Step`] it names the wait itself, for example in a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signaled<T: Signal>(pub T);

#[diagnostic::do_not_recommend]
impl<T: Signal> Step for Signaled<T> {
    type Input = ();
    type Output = T;

    const NAME: &'static str = T::NAME;
    const OPTIONS: StepOptions = StepOptions::DEFAULT.no_compensation();
    const INPUT: Codec<()> = codec::<()>();
    const OUTPUT: Codec<T> = codec::<T>();
}
