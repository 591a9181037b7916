//! What a saga returned.

use std::fmt;
use std::sync::Arc;

use crate::step::{CodecError, Payload, codec};

/// What a saga returned, as it is stored. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct SagaResult(Arc<str>);

impl SagaResult {
    pub(super) fn new(json: &str) -> Self {
        Self(json.into())
    }

    /// The result as a value.
    ///
    /// # Errors
    /// When it is a value of another type.
    pub fn read<R: Payload>(&self) -> Result<R, CodecError> {
        codec::<R>().decode(self.0.as_bytes())
    }

    /// The result as JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// Says how long it is, and not what it is: payloads are never printed.
impl fmt::Debug for SagaResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SagaResult({} bytes)", self.0.len())
    }
}
