//! After which time a client is to try again.

use std::time::Duration;

/// As `Retry-After` says it, in whole seconds.
pub(super) const SOON: Duration = Duration::from_secs(1);
