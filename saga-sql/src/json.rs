use std::error::Error;

use serde::de::{self, DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};

use super::{SqlType, SqlValue, ToSql};

/// A value that a column keeps as JSON: as a parameter, and as a field of a row. PostgreSQL's type for it is `JSONB`,
/// SQLite's `TEXT`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Json<T>(pub T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> Result<SqlValue<'_>, Box<dyn Error + Send + Sync>> {
        Ok(SqlValue::Json(serde_json::value::to_raw_value(&self.0)?))
    }

    fn sql_type() -> SqlType {
        SqlType::Json
    }
}

/// From the text of the JSON, which is what a row has.
impl<'de, T: DeserializeOwned> Deserialize<'de> for Json<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        serde_json::from_str(&text).map(Self).map_err(|error| de::Error::custom(format_args!("its JSON: {error}")))
    }
}
