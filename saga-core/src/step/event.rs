use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

/// Something that happened, published to the subscribers of its topic.
///
/// # Examples
///
/// ```
/// use saga_core::step::Event;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct OrderPaid { order_id: String }
///
/// impl Event for OrderPaid {
///     const NAME: &'static str = "order-paid";
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no event",
    label = "does not implement `Event`",
    note = "an event has a name: `impl saga_core::Event for OrderPaid {{ const NAME: &'static str = \"order-paid\"; }}`; what is told of a step is made of its output with `.emits::<OrderPaid>(|input, output| ..)`"
)]
pub trait Event: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name of the event in messages.
    const NAME: &'static str;
}

/// An event that a step emitted, in its stored form.
#[derive(Clone, PartialEq, Eq)]
pub struct Emitted {
    /// [`Event::NAME`].
    pub name: Cow<'static, str>,
    /// The event as JSON.
    pub payload: Vec<u8>,
}

/// Payloads are never printed.
impl fmt::Debug for Emitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitted").field("name", &self.name).field("bytes", &self.payload.len()).finish()
    }
}
