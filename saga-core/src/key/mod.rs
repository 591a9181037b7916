//! Keys, names and tenants, validated at the edge.
//!
//! A step key is `key:step`; for a compensation `key:step:undo`. It is read from the right, and no step can be named `undo`,
//! so two different steps never share a key. A property test verifies this.

mod external;
mod key;
// The limits, and the ids and keys of steps, are part of the contract of a store, and public there.
pub(crate) mod name;
pub(crate) mod step_id;
pub(crate) mod step_key;
mod tenant;

pub(crate) use self::external::external_key;
pub use self::key::Key;
pub use self::name::InvalidName;
pub(crate) use self::name::{check_step_name, check_topic};
pub(crate) use self::step_id::StepId;
pub use self::tenant::{Namespace, Tenant};
