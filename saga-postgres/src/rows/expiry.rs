//! How long an ended saga is kept.

use saga_core::store::{Advance, Expiry, NewSaga, NextAge};
use sqlx::postgres::PgRow;
use sqlx::{Error, Row as _};

use crate::clock::micros;

/// The microseconds until a saga's present age is over, and until it is deleted if it becomes a tombstone first. A saga
/// that has not ended, or is kept for ever, has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Term {
    pub(crate) expire: Option<i64>,
    pub(crate) delete: Option<i64>,
    pub(crate) hosts: Option<String>,
}

impl Term {
    pub(crate) fn of_advance(advance: &Advance) -> Self {
        let is_full = advance.status.is_ended() && !advance.state.is_empty();
        Self::of(advance.expiry.as_deref().filter(|_| is_full))
    }

    pub(crate) fn of_start(saga: &NewSaga) -> Self {
        let is_full = saga.status.is_ended() && !saga.state.is_empty();
        Self::of(saga.expiry.as_deref().filter(|_| is_full))
    }

    fn of(expiry: Option<&Expiry>) -> Self {
        let Some(expiry) = expiry else { return Self::default() };
        let becomes_tombstone = expiry.delete_in > expiry.tombstone_in;
        Self {
            expire: Some(micros(expiry.tombstone_in)),
            delete: becomes_tombstone.then(|| micros(expiry.delete_in)),
            hosts: hosts_text(expiry),
        }
    }
}

/// What becomes of a saga.
pub(crate) fn next_age(becomes_tombstone: bool) -> NextAge {
    if becomes_tombstone { NextAge::Tombstone } else { NextAge::Deleted }
}

/// The names of services as one text; no name has a comma.
pub(crate) fn hosts_text(expiry: &Expiry) -> Option<String> {
    (!expiry.hosts.is_empty()).then(|| expiry.hosts.join(","))
}

pub(crate) fn hosts(row: &PgRow, index: usize) -> Result<Vec<String>, Error> {
    let text: Option<&str> = row.try_get(index)?;
    Ok(text.into_iter().flat_map(|text| text.split(',')).map(str::to_owned).collect())
}
