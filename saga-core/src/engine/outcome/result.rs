//! What a saga returned.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer, ser};
use serde_json::value::RawValue;

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

/// As the JSON that it is.
impl Serialize for SagaResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json: &RawValue = serde_json::from_str(&self.0).map_err(<S::Error as ser::Error>::custom)?;
        json.serialize(serializer)
    }
}

/// Says how long it is, and not what it is: payloads are never printed.
impl fmt::Debug for SagaResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SagaResult({} bytes)", self.0.len())
    }
}
