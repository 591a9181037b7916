use std::borrow::Cow;
use std::fmt;

use serde::de::value::{CowStrDeserializer, SeqDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// What stands in one column of a row. It borrows from the row of the driver.
#[derive(Debug)]
pub(crate) enum Cell<'r> {
    Null,
    Integer(i64),
    Real(f64),
    #[cfg(feature = "postgres")]
    Bool(bool),
    /// Text, and also times and JSON.
    Text(Cow<'r, str>),
    Blob(Cow<'r, [u8]>),
    /// A type that only its own database has, by its name there.
    #[cfg(feature = "postgres")]
    Foreign(String),
}

/// What a row cannot be read as.
#[derive(Debug)]
pub(crate) struct RowError(pub(crate) String);

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RowError {}

impl de::Error for RowError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl<'de> Deserializer<'de> for Cell<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Integer(number) => visitor.visit_i64(number),
            Self::Real(number) => visitor.visit_f64(number),
            #[cfg(feature = "postgres")]
            Self::Bool(value) => visitor.visit_bool(value),
            Self::Text(Cow::Borrowed(text)) => visitor.visit_str(text),
            Self::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Self::Blob(bytes) => visitor.visit_bytes(&bytes),
            #[cfg(feature = "postgres")]
            Self::Foreign(ty) => Err(RowError(format!(
                "it has the type {ty}, which only this database has; cast it in the query, as in `column::text`"
            ))),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self {
            Self::Null => visitor.visit_none(),
            value => visitor.visit_some(value),
        }
    }

    /// SQLite has 1 and 0 for true and false.
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self {
            Self::Integer(0) => visitor.visit_bool(false),
            Self::Integer(1) => visitor.visit_bool(true),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_newtype_struct(self)
    }

    /// A `Vec<u8>` is a sequence to serde.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self {
            Self::Blob(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied())),
            other => other.deserialize_any(visitor),
        }
    }

    /// The name of a variant without fields.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        match self {
            Self::Text(text) => {
                let variant: CowStrDeserializer<'_, RowError> = text.into_deserializer();
                variant.deserialize_enum(name, variants, visitor)
            }
            other => other.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct map struct identifier
    }
}
