//! What every component may use: the store, the transport, the environment, the settings, the definitions, and the errors.

mod authorizer;
mod context;
mod error;
mod horizons;
mod payload_limits;
mod registered;
mod settings;
mod step_guard;
mod unreadable_values;

pub(crate) use self::authorizer::MessageAuthorizer;
pub(crate) use self::context::{EngineContext, Ports, random_uuid};

pub use self::error::{BuildError, RuntimeError, StartError};
pub(crate) use self::registered::Registered;
pub use self::settings::Settings;
pub(crate) use self::step_guard::{inside_step, is_inside_step, outside_step};
pub use self::unreadable_values::UnreadableValues;
