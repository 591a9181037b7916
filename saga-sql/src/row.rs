use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::cell::{Cell, RowError};

/// Reads a row into a value.
pub(crate) fn read<T: DeserializeOwned>(row: &impl Row) -> Result<T, RowError> {
    T::deserialize(RowDeserializer { row, next: 0 })
}

/// A row as the driver has it.
pub(crate) trait Row {
    fn columns(&self) -> usize;

    fn name(&self, column: usize) -> &str;

    /// # Errors
    /// When the driver cannot read it.
    fn cell(&self, column: usize) -> Result<Cell<'_>, RowError>;
}

struct RowDeserializer<'a, R> {
    row: &'a R,
    /// The column that is read next.
    next: usize,
}

impl<R: Row> RowDeserializer<'_, R> {
    fn read<'de, T: DeserializeSeed<'de>>(&self, column: usize, seed: T) -> Result<T::Value, RowError> {
        let named = |RowError(problem)| RowError(format!("column `{}`: {problem}", self.row.name(column)));
        self.row.cell(column).and_then(|cell| seed.deserialize(cell)).map_err(named)
    }

    /// The only column.
    fn only(&self) -> Result<Cell<'_>, RowError> {
        match self.row.columns() {
            1 => self.row.cell(0),
            columns => Err(RowError(format!(
                "the query gives {columns} columns for one value; read them into a struct or a tuple"
            ))),
        }
    }

    /// What a value of the only column is read as.
    fn of_only<T>(&self, read: impl FnOnce(Cell<'_>) -> Result<T, RowError>) -> Result<T, RowError> {
        let named = |RowError(problem)| RowError(format!("column `{}`: {problem}", self.row.name(0)));
        let cell = self.only()?;
        read(cell).map_err(named)
    }
}

macro_rules! from_only_column {
    ($($method:ident)*) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            self.of_only(|cell| cell.$method(visitor))
        }
    )* };
}

impl<'de, R: Row> Deserializer<'de> for RowDeserializer<'_, R> {
    type Error = RowError;

    /// A type that takes anything gets the names of the columns with their values.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_map(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, RowError> {
        let columns = self.row.columns();
        if columns != length {
            return Err(RowError(format!("the query gives {columns} columns for a tuple of {length}")));
        }
        visitor.visit_seq(self)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        self.of_only(|cell| cell.deserialize_enum(name, variants, visitor))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, RowError> {
        self.of_only(|cell| cell.deserialize_unit(visitor))
    }

    from_only_column! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option
        deserialize_unit deserialize_seq
    }

    forward_to_deserialize_any! { map struct identifier ignored_any }
}

impl<'de, R: Row> MapAccess<'de> for RowDeserializer<'_, R> {
    type Error = RowError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, RowError> {
        if self.next == self.row.columns() {
            return Ok(None);
        }
        let name: StrDeserializer<'_, RowError> = self.row.name(self.next).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, RowError> {
        self.next += 1;
        self.read(self.next - 1, seed)
    }
}

impl<'de, R: Row> SeqAccess<'de> for RowDeserializer<'_, R> {
    type Error = RowError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, RowError> {
        if self.next == self.row.columns() {
            return Ok(None);
        }
        self.next += 1;
        self.read(self.next - 1, seed).map(Some)
    }
}
