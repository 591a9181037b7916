//! When the time of an ended saga is over.

use rusqlite::{Connection, Row};
use saga_core::store::{Advance, Expiry, NewSaga, NextAge, SagaId, Timestamp};

use crate::clock::plus;

/// The dates of a saga, as they are stored. One that has not ended, or is kept for ever, has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dates {
    /// When its present age is over.
    pub(crate) expires_at: Option<i64>,
    /// When it is deleted, if it becomes a tombstone first.
    pub(crate) delete_at: Option<i64>,
    pub(crate) hosts: Option<String>,
}

impl Dates {
    pub(crate) fn of_advance(advance: &Advance, now: Timestamp) -> Self {
        let is_full = advance.status.is_ended() && !advance.state.is_empty();
        Self::full(advance.expiry.as_deref().filter(|_| is_full), now)
    }

    pub(crate) fn of_start(saga: &NewSaga, now: Timestamp) -> Self {
        let is_full = saga.status.is_ended() && !saga.state.is_empty();
        Self::full(saga.expiry.as_deref().filter(|_| is_full), now)
    }

    /// The dates of a saga that ended at that time, and may be a tombstone.
    pub(crate) fn of_ended(expiry: Option<&Expiry>, ended_at: Timestamp, is_tombstone: bool) -> Self {
        if !is_tombstone {
            return Self::full(expiry, ended_at);
        }
        let Some(expiry) = expiry else { return Self::default() };
        Self { expires_at: Some(plus(ended_at, expiry.delete_in).0), delete_at: None, hosts: None }
    }

    fn full(expiry: Option<&Expiry>, ended_at: Timestamp) -> Self {
        let Some(expiry) = expiry else { return Self::default() };
        let becomes_tombstone = expiry.delete_in > expiry.tombstone_in;
        Self {
            expires_at: Some(plus(ended_at, expiry.tombstone_in).0),
            delete_at: becomes_tombstone.then(|| plus(ended_at, expiry.delete_in).0),
            hosts: hosts_text(&expiry.hosts),
        }
    }

    /// Writes the dates of a saga.
    pub(crate) fn write(&self, conn: &Connection, saga: SagaId) -> rusqlite::Result<()> {
        conn.prepare_cached("UPDATE saga_progress SET expires_at = ?2, delete_at = ?3, hosts = ?4 WHERE id = ?1")?
            .execute((saga.0, self.expires_at, self.delete_at, self.hosts.as_deref()))?;
        Ok(())
    }
}

/// What becomes of a saga with this `delete_at`.
pub(crate) fn next_age(delete_at: Option<i64>) -> NextAge {
    if delete_at.is_some() { NextAge::Tombstone } else { NextAge::Deleted }
}

/// The names of services as one text; no name has a comma.
fn hosts_text(hosts: &[String]) -> Option<String> {
    (!hosts.is_empty()).then(|| hosts.join(","))
}

pub(crate) fn hosts(row: &Row<'_>, index: usize) -> rusqlite::Result<Vec<String>> {
    let text: Option<String> = row.get(index)?;
    Ok(text.iter().flat_map(|text| text.split(',')).map(str::to_owned).collect())
}
