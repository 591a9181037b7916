use std::borrow::Cow;
use std::error::Error;
use std::time::SystemTime;

use saga_core::store::Timestamp;

use super::{SqlType, SqlValue};

/// A Rust value that can be a parameter of a statement.
///
/// # Examples
///
/// A type of the application is one with a few lines:
///
/// ```
/// use saga_sql::{SqlType, SqlValue, ToSql};
///
/// struct OrderId(u32);
///
/// impl ToSql for OrderId {
///     fn to_sql(&self) -> Result<SqlValue<'_>, Box<dyn std::error::Error + Send + Sync>> {
///         Ok(SqlValue::Integer(self.0.into()))
///     }
///
///     fn sql_type() -> SqlType {
///         SqlType::Integer
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a statement",
    label = "not a value that both databases have",
    note = "numbers up to `i64`, text, bytes, `bool`, `SystemTime`, `saga_sql::Json(value)` and an `Option` of one of them can; implement `saga_sql::ToSql` for a type of your own, and cast a `u64` or `usize` with `i64::try_from`"
)]
pub trait ToSql {
    /// The value as the databases take it.
    ///
    /// # Errors
    /// When there is no such value. The statement is not run then.
    fn to_sql(&self) -> Result<SqlValue<'_>, Box<dyn Error + Send + Sync>>;

    /// The type of all values: that of `NULL` where an `Option` of this type is `None`.
    fn sql_type() -> SqlType
    where
        Self: Sized;
}

macro_rules! to_sql {
    ($($rust:ty, $sql:ident, |$value:ident| $made:expr;)*) => { $(
        impl ToSql for $rust {
            fn to_sql(&self) -> Result<SqlValue<'_>, Box<dyn Error + Send + Sync>> {
                let $value = self;
                Ok(SqlValue::$sql($made))
            }

            fn sql_type() -> SqlType {
                SqlType::$sql
            }
        }
    )* };
}

to_sql! {
    i8, Integer, |number| (*number).into();
    i16, Integer, |number| (*number).into();
    i32, Integer, |number| (*number).into();
    i64, Integer, |number| *number;
    u8, Integer, |number| (*number).into();
    u16, Integer, |number| (*number).into();
    u32, Integer, |number| (*number).into();
    f32, Real, |number| (*number).into();
    f64, Real, |number| *number;
    bool, Bool, |value| *value;
    String, Text, |text| Cow::Borrowed(text);
    &str, Text, |text| Cow::Borrowed(text);
    Cow<'_, str>, Text, |text| Cow::Borrowed(text);
    Vec<u8>, Blob, |bytes| Cow::Borrowed(bytes);
    &[u8], Blob, |bytes| Cow::Borrowed(bytes);
    SystemTime, Time, |time| *time;
    Timestamp, Time, |time| (*time).into();
}

impl<T: ToSql> ToSql for Option<T> {
    fn to_sql(&self) -> Result<SqlValue<'_>, Box<dyn Error + Send + Sync>> {
        self.as_ref().map_or(Ok(SqlValue::Null(T::sql_type())), T::to_sql)
    }

    fn sql_type() -> SqlType {
        T::sql_type()
    }
}

impl<T: ToSql> ToSql for &T {
    fn to_sql(&self) -> Result<SqlValue<'_>, Box<dyn Error + Send + Sync>> {
        T::to_sql(self)
    }

    fn sql_type() -> SqlType {
        T::sql_type()
    }
}
