use std::{any::type_name, fmt, marker::PhantomData};

use serde::{Serialize, de::DeserializeOwned};

use super::{Codec, Step, StepOptions, codec};

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

/// A signal, as the step that it is to those behind it: its output is the message that arrived, or what stands for it
/// where none arrived in time.
///
/// `Output<Signaled<Approval>>` is a parameter of a later step, and `.step_after::<ship, Received<Approval>>(..)` reads it
/// for a mapping.
pub struct Signaled<T>(PhantomData<fn(T)>);

impl<T: Signal> Step for Signaled<T> {
    type Input = ();
    type Output = T;
    type Params = ();

    const NAME: &'static str = T::NAME;
    const OPTIONS: StepOptions = StepOptions::DEFAULT.no_compensation();
    const INPUT: Codec<()> = codec::<()>();
    const OUTPUT: Codec<T> = codec::<T>();
}

impl<T> fmt::Debug for Signaled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Received<{}>", type_name::<T>())
    }
}
