//! Semantic locks. The functions of the schema decide; the requests and the ends of locks of one transaction are one
//! statement each.

use async_trait::async_trait;
use saga_core::store::{
    Applied, Changes, Entity, LockAnswer, LockFilter, LockRequest, LockState, SagaId, SemanticLocks, StoreError,
    StoredLock, Unlock, WorkId,
};
use sqlx::postgres::PgRow;
use sqlx::{Error, PgConnection, Row as _};

use crate::clock::micros;
use crate::error::store_error;
use crate::rows::arrays::{Statement, column};
use crate::rows::rows::{self, FromRow, limit, signed, unreadable};
use crate::store::store::PostgresStore;

const OPERATION: &str = "ask_for_locks";

/// The arguments of `ask_for_locks` behind the first one.
const OTHERS: &str = "$2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12";

const LIST: &str = "SELECT r.number, r.tenant, r.saga, r.key, r.owner, r.name, r.state, r.other, r.work, r.asked_at, \
     r.granted_at, \
     ARRAY(SELECT e.kind FROM {schema}.locked_entities e WHERE e.number = r.number ORDER BY e.kind, e.id), \
     ARRAY(SELECT e.id FROM {schema}.locked_entities e WHERE e.number = r.number ORDER BY e.kind, e.id), \
     ARRAY(SELECT e.token FROM {schema}.locked_entities e WHERE e.number = r.number ORDER BY e.kind, e.id), \
     ARRAY(SELECT b FROM {schema}.lock_blockers(r.number) AS b) \
     FROM {schema}.lock_requests r WHERE r.tenant = $1 AND ($2::bigint IS NULL OR r.saga = $2) \
     AND ($3::text IS NULL OR EXISTS (SELECT FROM {schema}.locked_entities e \
         WHERE e.tenant = $1 AND e.kind = $3 AND e.id = $4 AND e.number = r.number)) \
     AND r.number > $5 ORDER BY r.number LIMIT $6";

#[async_trait]
impl SemanticLocks for PostgresStore {
    async fn ask_for_locks(&self, requests: Vec<LockRequest>) -> Result<Vec<LockAnswer>, StoreError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.call_rows(OPERATION, self.ask(&requests)).await?;
        let answers = rows.iter().map(LockAnswer::from_row).collect::<Result<_, _>>();
        answers.map_err(|error| store_error(OPERATION, error))
    }

    async fn end_abandoned_locks(&self, limit: usize) -> Result<u64, StoreError> {
        // The argument depends on the limit of waits, so that it is set before the function is called.
        let sql = format!(
            "SELECT {{schema}}.end_abandoned_locks(CASE WHEN short.waits IS NOT NULL THEN $1 END) FROM {}",
            self.short_wait()
        );
        let query = sqlx::query(self.sql(&sql)).bind(rows::limit(limit));
        let rows = self.call_rows("end_abandoned_locks", query).await?;
        let ended = rows.first().map_or(Ok(0), |row| rows::unsigned(row, 0));
        ended.map_err(|error| store_error("end_abandoned_locks", error))
    }

    async fn locks(&self, filter: &LockFilter) -> Result<Vec<StoredLock>, StoreError> {
        let entity = filter.entity.as_ref();
        let query = sqlx::query(self.sql(LIST))
            .bind(filter.tenant.as_str().to_owned())
            .bind(filter.saga.map(|saga| saga.0))
            .bind(entity.map(|entity| entity.kind().to_owned()))
            .bind(entity.map(|entity| entity.id().to_owned()))
            .bind(filter.after.map_or(-1, signed))
            .bind(limit(filter.limit));
        let rows = self.read_rows("locks", query).await?;
        rows.iter().map(StoredLock::from_row).collect::<Result<_, _>>().map_err(|error| store_error("locks", error))
    }
}

impl PostgresStore {
    /// One call with all requests. Its arrays of entities have those of the first request, then those of the second, and so on.
    fn ask(&self, requests: &[LockRequest]) -> Statement<'static> {
        // The first argument depends on the limit, so that it is set before the function is called.
        let sql = format!(
            "SELECT a.answer, a.front, a.left_micros, a.tokens FROM {} CROSS JOIN LATERAL \
             {{schema}}.ask_for_locks(CASE WHEN short.waits IS NOT NULL THEN $1 END, {OTHERS}) a ORDER BY a.place",
            self.short_wait()
        );
        let entities: Vec<(i32, &Entity)> = (1..)
            .zip(requests)
            .flat_map(|(place, request)| request.entities.iter().map(move |entity| (place, entity)))
            .collect();
        let lasts = requests.iter().scan(0_i32, |last, request| {
            *last = last.saturating_add(i32::try_from(request.entities.len()).unwrap_or(i32::MAX));
            Some(*last)
        });
        sqlx::query(self.sql(&sql))
            .bind(column(requests, |request| request.tenant.as_str().to_owned()))
            .bind(column(requests, |request| request.owner.as_str().to_owned()))
            .bind(column(requests, |request| request.saga.0))
            .bind(column(requests, |request| request.key.as_str().to_owned()))
            .bind(column(requests, |request| request.name.clone()))
            .bind(column(requests, |request| request.work.id.0))
            .bind(column(requests, |request| signed(request.work.epoch)))
            .bind(column(requests, |request| micros(request.within)))
            .bind(lasts.collect::<Vec<i32>>())
            .bind(column(&entities, |(place, _)| *place))
            .bind(column(&entities, |(_, entity)| entity.kind().to_owned()))
            .bind(column(&entities, |(_, entity)| entity.id().to_owned()))
    }

    /// Ends the locks of the changes that were applied, in the transaction that wrote them.
    pub(crate) async fn unlock_applied(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        changes: &[Changes],
        applied: &[Applied],
    ) -> Result<(), StoreError> {
        let is_applied = |(_, applied): &(&Changes, &Applied)| applied.is_ok();
        let written = changes.iter().zip(applied).filter(is_applied).map(|(change, _)| change);
        self.unlock(conn, operation, written).await
    }

    /// Ends the locks of changes, in the transaction that wrote them.
    pub(crate) async fn unlock<'a>(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        changes: impl Iterator<Item = &'a Changes>,
    ) -> Result<(), StoreError> {
        let unlocks: Vec<&Unlock> = changes.flat_map(|change| &change.unlocked).collect();
        if unlocks.is_empty() {
            return Ok(());
        }
        sqlx::query(self.sql("SELECT {schema}.unlock($1, $2, $3, $4)"))
            .bind(column(&unlocks, |(Unlock::Owner(tenant, _) | Unlock::Lock(tenant, ..))| tenant.as_str().to_owned()))
            .bind(column(&unlocks, |unlock| match unlock {
                Unlock::Owner(_, owner) => Some(owner.as_str().to_owned()),
                Unlock::Lock(..) => None,
            }))
            .bind(column(&unlocks, |unlock| match unlock {
                Unlock::Owner(..) => None,
                Unlock::Lock(_, saga, _) => Some(saga.0),
            }))
            .bind(column(&unlocks, |unlock| match unlock {
                Unlock::Owner(..) => None,
                Unlock::Lock(_, _, name) => Some(name.clone()),
            }))
            .persistent(self.prepares_statements())
            .execute(conn)
            .await
            .map(drop)
            .map_err(|error| store_error(operation, error))
    }
}

impl FromRow for LockAnswer {
    fn from_row(row: &PgRow) -> Result<Self, Error> {
        Ok(match rows::text(row, 0)? {
            "granted" => {
                let tokens: Vec<i64> = row.try_get(3)?;
                Self::Granted(tokens.into_iter().map(i64::cast_unsigned).collect())
            }
            "waiting" => Self::Waits(rows::micros(row, 2)?),
            "timed-out" => Self::TimedOut(rows::key(row, 1)?),
            "deadlock" => Self::Deadlock(rows::key(row, 1)?),
            "gone" => Self::Gone,
            other => return Err(unreadable(0, format!("{other:?} is not a value of this version"))),
        })
    }
}

impl FromRow for StoredLock {
    fn from_row(row: &PgRow) -> Result<Self, Error> {
        let (kinds, ids): (Vec<String>, Vec<String>) = (row.try_get(11)?, row.try_get(12)?);
        let tokens: Vec<Option<i64>> = row.try_get(13)?;
        let entities = kinds.into_iter().zip(ids).map(|(kind, id)| Entity::new(kind, id));
        let owners: Vec<String> = row.try_get(14)?;
        let owner = |owner: String| saga_core::Key::from_stored(&owner).map_err(|error| unreadable(14, error));
        Ok(Self {
            number: rows::unsigned(row, 0)?,
            tenant: rows::tenant(row, 1)?,
            saga: SagaId(row.try_get(2)?),
            key: rows::key(row, 3)?,
            owner: rows::key(row, 4)?,
            name: row.try_get(5)?,
            state: match rows::text(row, 6)? {
                "waiting" => LockState::Waiting,
                "granted" => LockState::Granted,
                "timed-out" => LockState::TimedOut(rows::key(row, 7)?),
                "deadlock" => LockState::Deadlock(rows::key(row, 7)?),
                other => return Err(unreadable(6, format!("{other:?} is not a value of this version"))),
            },
            work: WorkId(row.try_get(8)?),
            asked_at: rows::moment(row, 9)?,
            granted_at: rows::moment_or_none(row, 10)?,
            entities: entities.zip(tokens.into_iter().map(|token| token.map(i64::cast_unsigned))).collect(),
            waits_for: owners.into_iter().map(owner).collect::<Result<_, _>>()?,
        })
    }
}
