//! `TIMESTAMPTZ`.

use std::error::Error;
use std::time::SystemTime;

use saga_core::store::Timestamp;
use saga_postgres::sqlx::encode::IsNull;
use saga_postgres::sqlx::postgres::types::Oid;
use saga_postgres::sqlx::postgres::{PgArgumentBuffer, PgTypeInfo, PgValueFormat, PgValueRef};
use saga_postgres::sqlx::{Decode, Encode, Postgres, Type};

/// PostgreSQL counts from 2000-01-01.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// `TIMESTAMPTZ` in `pg_type`: it is the same on every server.
const TIMESTAMPTZ: PgTypeInfo = PgTypeInfo::with_oid(Oid(1184));

/// A time as PostgreSQL has it.
pub(super) struct Time(pub(super) Timestamp);

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        Self(time.into())
    }
}

impl Type<Postgres> for Time {
    fn type_info() -> PgTypeInfo {
        TIMESTAMPTZ
    }
}

impl Encode<'_, Postgres> for Time {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, Box<dyn Error + Send + Sync>> {
        let Timestamp(micros) = self.0;
        let micros = micros.checked_sub(EPOCH_MICROS).ok_or("PostgreSQL has no time so long ago")?;
        Encode::<Postgres>::encode_by_ref(&micros, buffer)
    }
}

impl<'r> Decode<'r, Postgres> for Time {
    fn decode(value: PgValueRef<'r>) -> Result<Self, Box<dyn Error + Send + Sync>> {
        if value.format() == PgValueFormat::Text {
            return Err("a time arrived as text".into());
        }
        let micros = <i64 as Decode<'r, Postgres>>::decode(value)?;
        // `infinity` and `-infinity` are the largest and the smallest number.
        let micros = micros.checked_add(EPOCH_MICROS).filter(|_| micros != i64::MIN);
        Ok(Self(Timestamp(micros.ok_or("it is no time, but infinity")?)))
    }
}
