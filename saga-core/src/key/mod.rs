//! Keys, names and tenants, validated at the edge.
//!
//! A step key is `key:step`; for a compensation `key:step:undo`. It is read from the right, and no step can be named `undo`,
//! so two different steps never share a key. A property test verifies this.

mod external;
mod key;
mod name;
// Its type is part of the contract of a store, and public there.
pub(crate) mod step_id;
mod step_key;
mod tenant;

pub(crate) use self::external::external_key;
pub use self::key::Key;
pub(crate) use self::name::check_topic;
pub use self::name::{InvalidName, KEY_BYTES_MAX, STEP_NAME_BYTES_MAX, TENANT_BYTES_MAX, check_step_name};
pub(crate) use self::step_id::StepId;
pub use self::step_key::StepKey;
pub use self::tenant::{Namespace, Tenant};
