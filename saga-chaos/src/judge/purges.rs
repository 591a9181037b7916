use std::collections::BTreeMap;

use anyhow::Context as _;
use saga_testkit::checker::{Age, Standing, What};
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, PgConnection, Row as _};

use super::steps::place_of;
use super::stored::standing_of;
use crate::plan::Role;
use crate::world::Database;

/// A saga that was purged, by the journal that the database keeps, as it was at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Purge {
    pub(crate) at_micros: i64,
    /// Whose database it is in.
    pub(crate) role: Role,
    /// The id of its row.
    pub(crate) saga: i64,
    pub(crate) key: String,
    pub(crate) revision: u64,
    pub(crate) standing: Standing,
    pub(crate) was_tombstone: bool,
    pub(crate) is_deleted: bool,
    /// What the archive had, and what named it then.
    pub(crate) beside: Beside,
}

/// What there was of a saga when it was purged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    /// Its time was over.
    pub(crate) is_due: bool,
    /// The archive had it at its revision, and with its end.
    pub(crate) is_archived: bool,
    pub(crate) records: i64,
    pub(crate) work: i64,
    /// Open dead letters that name it.
    pub(crate) letters: i64,
    /// Messages of it that were not sent.
    pub(crate) messages: i64,
}

/// All that was purged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Purges(pub(crate) Vec<Purge>);

impl Purges {
    /// Reads the journals of all databases, which are there in a run that purges.
    pub(crate) async fn read(databases: &[Database]) -> anyhow::Result<Self> {
        let mut purges = Vec::new();
        for Database { role, url, .. } in databases {
            let mut conn = PgConnection::connect(url).await?;
            let rows = sqlx::query(
                "SELECT (extract(epoch FROM at) * 1000000)::bigint AS at_micros, * FROM chaos.purges ORDER BY id",
            );
            let rows = rows.fetch_all(&mut conn).await.context("cannot read the journal of what was purged")?;
            for row in &rows {
                purges.push(Purge::of(row, *role)?);
            }
            conn.close().await?;
        }
        Ok(Self(purges))
    }

    /// What must not be, whatever became of the orders.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.0.iter().filter_map(Purge::problem).collect();
        let mut ids: BTreeMap<(Role, &str), i64> = BTreeMap::new();
        for purge in &self.0 {
            let known = *ids.entry((purge.role, &purge.key)).or_insert(purge.saga);
            if known != purge.saga {
                let (key, saga) = (&purge.key, purge.saga);
                problems
                    .push(format!("{key} was the key of two sagas, {known} and {saga}, though no start came so late"));
            }
        }
        problems
    }

    /// How many became tombstones, or were deleted, in the database of that service.
    pub(crate) fn count(&self, role: Role, is_deleted: bool) -> u64 {
        self.0.iter().filter(|purge| purge.role == role && purge.is_deleted == is_deleted).count() as u64
    }
}

impl Purge {
    fn of(row: &PgRow, role: Role) -> anyhow::Result<Self> {
        let beside = Beside {
            is_due: row.try_get("is_due")?,
            is_archived: row.try_get("is_archived")?,
            records: row.try_get("records")?,
            work: row.try_get("work")?,
            letters: row.try_get("letters")?,
            messages: row.try_get("messages")?,
        };
        Ok(Self {
            at_micros: row.try_get("at_micros")?,
            role,
            saga: row.try_get("saga")?,
            key: row.try_get("key")?,
            revision: row.try_get::<i64, _>("revision")?.unsigned_abs(),
            standing: standing_of(row.try_get("status")?),
            was_tombstone: row.try_get("was_tombstone")?,
            is_deleted: row.try_get("is_deleted")?,
            beside,
        })
    }

    fn problem(&self) -> Option<String> {
        let Beside { is_due, work, letters, messages, .. } = self.beside;
        let wrong = match () {
            () if letters > 0 => format!("{letters} open dead letters name it"),
            () if messages > 0 => format!("{messages} messages of it wait to be sent"),
            () if work > 0 => format!("{work} rows of work are left of it"),
            () if !is_due => "its time is not over".to_owned(),
            () => return None,
        };
        Some(format!("{} of {} was purged, and {wrong}", self.key, self.role.name()))
    }

    /// The order that it is of.
    pub(super) fn order(&self) -> &str {
        self.key.split_once('>').map_or(self.key.as_str(), |(order, _)| order)
    }

    /// What the checker is told of it: that it was archived before, and that it was purged.
    pub(super) fn facts(&self, saga: u32) -> Vec<What> {
        let row = self.key.split_once('>').map_or(Some(0), |(_, step)| place_of(step).map(|place| place + 1));
        let (Some(row), Self { revision, was_tombstone, standing, .. }) = (row, self.clone()) else {
            return Vec::new();
        };
        let service = self.role as u8;
        let age = if self.is_deleted { Age::Deleted } else { Age::Tombstone };
        let is_whole = self.beside.records == 0;
        let archived = What::Archived { service, saga, row, revision };
        let purged = What::Purged { service, saga, row, revision, age, was_tombstone, standing, is_whole };
        // A tombstone was archived when it became one.
        let archived = (self.beside.is_archived && !was_tombstone).then_some(archived);
        archived.into_iter().chain([purged]).collect()
    }
}
