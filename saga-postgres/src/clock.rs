//! The database's times as values of the contract. No clock of this process decides anything.

use std::time::Duration;

use saga_core::store::Timestamp;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgTypeInfo, PgValueFormat, PgValueRef};
use sqlx::{Decode, Postgres, Type, TypeInfo as _};

/// The start of PostgreSQL's microseconds: 2000-01-01, in microseconds since 1970.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
/// The longest duration: PostgreSQL's calendar ends.
const MICROS_MAX: i64 = 1_000 * 365 * 24 * 3_600 * 1_000_000;

/// A `timestamptz` column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl Type<Postgres> for Moment {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("timestamptz")
    }

    fn compatible(ty: &PgTypeInfo) -> bool {
        ty.name().eq_ignore_ascii_case("timestamptz")
    }
}

impl<'r> Decode<'r, Postgres> for Moment {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        if value.format() != PgValueFormat::Binary {
            return Err("a time arrived as text; only the binary format is supported".into());
        }
        let micros = i64::from_be_bytes(value.as_bytes()?.try_into()?);
        Ok(Self(Timestamp(micros.saturating_add(EPOCH_MICROS))))
    }
}

/// A duration as an argument of statements.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(MICROS_MAX).min(MICROS_MAX)
}

/// A duration from a row.
pub(crate) fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
