//! Claims of work, of all of it and of a part: what they ask for, and what they are answered.

use std::collections::{BTreeMap, HashMap};

use saga_core::store::{
    ClaimRequest, Claimed, ClaimedWork, DefinitionId, SagaId, SagaRow, ShareRequest, StepRecord, StoreError,
    UnreadableWork, WorkId, WorkKind, WorkRef,
};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row as _};

use crate::clock::{duration, micros};
use crate::error::{Commits, store_error};
use crate::rows::definition_numbers::Numbers;
use crate::rows::rows::{self, FromRow, readable};
use crate::store::store::PostgresStore;

/// A saga and its records, or what of them cannot be read.
type ReadSaga = Result<(SagaRow, Vec<StepRecord>), sqlx::Error>;

impl PostgresStore {
    pub(crate) async fn claim_on(
        &self,
        conn: &mut PgConnection,
        request: &ClaimRequest,
        commits: Commits,
    ) -> Result<Claimed, StoreError> {
        let numbers = self.known_definitions(conn, "claim", request.definitions.iter().cloned()).await?;
        let query = sqlx::query(self.sql("SELECT * FROM {schema}.claim_waiting_work($1, $2, $3, $4, $5)"))
            .bind(numbers.all())
            .bind(request.lease.owner.0)
            .bind(micros(request.lease.ttl))
            .bind(rows::limit(request.limit))
            .bind(request.takes_over);
        self.claimed_by(conn, "claim", query, commits).await
    }

    pub(crate) async fn claim_shares_on(
        &self,
        conn: &mut PgConnection,
        request: &ShareRequest,
        commits: Commits,
    ) -> Result<Claimed, StoreError> {
        let wanted = request.shares.iter().map(|share| share.definition.clone());
        let numbers: Numbers = self.known_definitions(conn, "claim_shares", wanted).await?;
        let arrays = ShareArrays::new(request, |definition| numbers.get(definition));
        let query =
            sqlx::query(self.sql("SELECT * FROM {schema}.claim_shares($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"))
                .bind(arrays.definitions)
                .bind(arrays.limits)
                .bind(arrays.are_whole)
                .bind(arrays.of_shares)
                .bind(arrays.kinds)
                .bind(arrays.steps)
                .bind(request.lease.owner.0)
                .bind(micros(request.lease.ttl))
                .bind(rows::limit(request.limit))
                .bind(request.takes_over);
        self.claimed_by(conn, "claim_shares", query, commits).await
    }

    /// The answer of a claim: its rows, the time until the next one is due, and the sagas of the rows.
    async fn claimed_by(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        claim: Query<'_, Postgres, PgArguments>,
        commits: Commits,
    ) -> Result<Claimed, StoreError> {
        let rows = claim.persistent(self.prepares_statements()).fetch_all(&mut *conn).await;
        let rows = rows.map_err(|error| commits.failed(operation, error))?;
        self.read_claimed(conn, operation, &rows).await.map_err(|error| commits.failed_behind(error))
    }

    async fn read_claimed(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        rows: &[PgRow],
    ) -> Result<Claimed, StoreError> {
        let mut claimed = read_rows(rows).map_err(|error| store_error(operation, error))?;
        let mut ids: Vec<SagaId> = claimed.work.iter().map(|work| work.saga).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut problems = BTreeMap::new();
        for (id, saga) in self.read_sagas(conn, operation, &ids).await? {
            match readable(saga).map_err(|error| store_error(operation, error))? {
                Ok(saga) => claimed.sagas.push(saga),
                Err(problem) => _ = problems.insert(id, problem),
            }
        }
        claimed.leave_out_unread(&problems);
        Ok(claimed)
    }

    /// Sagas by their ids, with their records: at least those of all steps that the rows count as ended, since the
    /// records are read after the rows.
    pub(crate) async fn sagas_with_records(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        ids: &[SagaId],
    ) -> Result<Vec<(SagaRow, Vec<StepRecord>)>, StoreError> {
        let sagas = self.read_sagas(conn, operation, ids).await?;
        let sagas = sagas.into_iter().map(|(_, saga)| saga).collect::<Result<_, _>>();
        sagas.map_err(|error| store_error(operation, error))
    }

    /// The same, with an answer for each saga that exists.
    async fn read_sagas(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        ids: &[SagaId],
    ) -> Result<Vec<(SagaId, ReadSaga)>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |error| store_error(operation, error);
        let rows = self.saga_rows(conn, ids).await.map_err(failed)?;
        let read = |row: &PgRow| Ok((row.try_get(0)?, SagaRow::from_row(row)));
        let sagas: Vec<(i64, _)> = rows.iter().map(read).collect::<Result<_, _>>().map_err(failed)?;
        let rows = sqlx::query(self.sql("SELECT * FROM {schema}.records_of_sagas($1)"))
            .bind(sagas.iter().map(|(id, _)| *id).collect::<Vec<_>>())
            .persistent(self.prepares_statements())
            .fetch_all(conn)
            .await
            .map_err(failed)?;
        let mut records: HashMap<i64, Result<Vec<StepRecord>, sqlx::Error>> = HashMap::with_capacity(sagas.len());
        for row in &rows {
            let of_saga = records.entry(row.try_get(9).map_err(failed)?).or_insert_with(|| Ok(Vec::new()));
            match (StepRecord::from_row(row), &mut *of_saga) {
                (Ok(record), Ok(records)) => records.push(record),
                (Err(error), Ok(_)) => *of_saga = Err(error),
                (_, Err(_)) => {}
            }
        }
        let with_records = |(id, saga): (i64, Result<SagaRow, sqlx::Error>)| {
            let records = records.remove(&id).unwrap_or_else(|| Ok(Vec::new()));
            (SagaId(id), saga.and_then(|saga| Ok((saga, records?))))
        };
        Ok(sagas.into_iter().map(with_records).collect())
    }
}

fn read_rows(rows: &[PgRow]) -> Result<Claimed, sqlx::Error> {
    let mut claimed = Claimed::default();
    for row in rows {
        match row.try_get::<Option<i64>, _>(0)? {
            Some(id) => match readable(ClaimedWork::from_row(row))? {
                Ok(work) => claimed.work.push(work),
                Err(problem) => claimed.unreadable.push(UnreadableWork { work: WorkId(id), problem }),
            },
            None => claimed.next_due_in = row.try_get::<Option<i64>, _>(11)?.map(duration),
        }
    }
    Ok(claimed)
}

impl FromRow for ClaimedWork {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            work: WorkRef { id: WorkId(row.try_get(0)?), epoch: rows::unsigned(row, 1)? },
            kind: rows::parsed(row, 2, WorkKind::parse)?,
            saga: SagaId(row.try_get(3)?),
            step: rows::step(row, 4)?,
            attempts: rows::narrow(row, 5)?,
            in_doubt: row.try_get(6)?,
            recovered: row.try_get(7)?,
            retrying_for: row.try_get::<Option<i64>, _>(8)?.map(duration),
            payload: row.try_get(9)?,
            late: row.try_get(10)?,
            reported: rows::reported(row, 12)?,
            began: row.try_get(15)?,
        })
    }
}

/// The shares as the arrays of one statement.
#[derive(Default)]
struct ShareArrays<'a> {
    definitions: Vec<i32>,
    limits: Vec<i64>,
    are_whole: Vec<bool>,
    /// For each step the share that it belongs to, counted from 1.
    of_shares: Vec<i32>,
    kinds: Vec<&'static str>,
    steps: Vec<&'a str>,
}

impl<'a> ShareArrays<'a> {
    fn new(request: &'a ShareRequest, number_of: impl Fn(&DefinitionId) -> Option<i32>) -> Self {
        let mut arrays = Self::default();
        for share in &request.shares {
            // A definition that the store does not know has no work.
            let Some(definition) = number_of(&share.definition) else { continue };
            arrays.definitions.push(definition);
            arrays.limits.push(rows::limit(share.limit));
            arrays.are_whole.push(share.steps.is_none());
            let number = i32::try_from(arrays.definitions.len()).unwrap_or(i32::MAX);
            for step in share.steps.iter().flat_map(|steps| steps.iter()) {
                arrays.of_shares.push(number);
                arrays.kinds.push(step.kind.as_str());
                arrays.steps.push(step.step);
            }
        }
        arrays
    }
}
