use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

/// A value that the runtime can store: the input or the output of a step.
///
/// It holds for every type that serde can write and read, that owns its data, and that may be sent
/// between threads.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored by the saga runtime",
    label = "cannot be stored",
    note = "this type and every type inside it must derive `serde::Serialize` and `serde::Deserialize`, own its data, and be `Send + Sync`"
)]
pub trait Payload: Serialize + DeserializeOwned + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Payload for T {}

/// How a value of type `T` is stored, and read again.
///
/// The bound that `T` is a [`Payload`] stands only at [`codec`], so a type that cannot be stored is
/// one error and not one for each use.
pub struct Codec<T> {
    encode: fn(&T) -> Result<Vec<u8>, CodecError>,
    decode: fn(&[u8]) -> Result<T, CodecError>,
}

impl<T> Codec<T> {
    /// The stored form of `value`.
    ///
    /// # Errors
    ///
    /// The value's own `Serialize` failed, or it has no JSON form, such as a map whose keys are no strings.
    pub fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        (self.encode)(value)
    }

    /// The value that `bytes` hold.
    ///
    /// # Errors
    ///
    /// The bytes were written by something else, or by a version of the type that differs too much.
    pub fn decode(&self, bytes: &[u8]) -> Result<T, CodecError> {
        (self.decode)(bytes)
    }
}

impl<T> Clone for Codec<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Codec<T> {}

impl<T> fmt::Debug for Codec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Codec<{}>", std::any::type_name::<T>())
    }
}

/// The codec of a type that can be stored: JSON.
pub const fn codec<T: Payload>() -> Codec<T> {
    Codec {
        encode: |value| serde_json::to_vec(value).map_err(CodecError::new::<T>),
        decode: |bytes| serde_json::from_slice(bytes).map_err(CodecError::new::<T>),
    }
}

/// A value could not be written in its stored form, or not be read from it.
#[derive(Debug, thiserror::Error)]
#[error("`{type_name}`: {source}")]
pub struct CodecError {
    type_name: &'static str,
    source: serde_json::Error,
}

impl CodecError {
    fn new<T>(source: serde_json::Error) -> Self {
        Self { type_name: std::any::type_name::<T>(), source }
    }
}
