//! The migration of a saga to another version of its definition.

use saga_core::store::{Applied, Miss, SagaMigration, StepId, StoreError, WorkId};
use sqlx::{PgConnection, Row as _};

use crate::clock::micros;
use crate::error::{misuse, store_error};
use crate::rows::arrays::column;
use crate::rows::rows::{clean, select_work, signed};
use crate::store::lock_wait::LockWait;
use crate::store::store::PostgresStore;

const OPERATION: &str = "migrate";

impl PostgresStore {
    /// Migrates a saga. All its rows are locked and all conditions are checked before anything is written.
    pub(crate) async fn migrate_saga(&self, moved: SagaMigration) -> Result<Applied, StoreError> {
        let store = self.clone();
        let applied = self.in_transaction(OPERATION, move |conn| {
            Box::pin(async move {
                let failed = |error| store_error(OPERATION, error);
                if let Some(work) = store.leased_row(conn, &moved).await.map_err(failed)? {
                    return Ok((Err(Miss::Work(work)), None));
                }
                if let Some(step) = store.conflicting_record(conn, &moved).await.map_err(failed)? {
                    return Ok((Err(Miss::Record(step)), None));
                }
                if !store.is_expected(conn, &moved).await.map_err(failed)? {
                    let mut rows = store.sagas_on(conn, OPERATION, &[moved.saga]).await?;
                    let row =
                        rows.pop().ok_or_else(|| misuse(OPERATION, format!("there is no saga {}", moved.saga.0)))?;
                    return Ok((Err(Miss::Saga(Box::new(row))), None));
                }
                let wanted = std::iter::once(moved.definition.clone());
                let numbers =
                    store.number_definitions(conn, OPERATION, wanted, LockWait::AsInTransaction, false).await?;
                let number = numbers.of(OPERATION, &moved.definition)?;
                store.write_migration(conn, &moved, number).await.map_err(failed)?;
                Ok((Ok(()), Some(numbers)))
            })
        });
        let (applied, numbers) = applied.await?;
        if let Some(numbers) = numbers {
            self.remember_definitions(&numbers);
        }
        Ok(applied)
    }

    /// Locks the work rows of the saga; answers a row that a living member has leased, or that another transaction
    /// holds.
    async fn leased_row(&self, conn: &mut PgConnection, moved: &SagaMigration) -> Result<Option<WorkId>, sqlx::Error> {
        let all = self.sql(&select_work("id", "= $1"));
        let all: Vec<i64> = sqlx::query_scalar(all).bind(moved.saga.0).persistent(false).fetch_all(&mut *conn).await?;
        let lock = self.sql(
            "SELECT w.id, w.owner IS NOT NULL AND w.leased_until > clock_timestamp() AND EXISTS ( \
             SELECT 1 FROM {schema}.members m WHERE m.id = w.owner AND m.alive_until > clock_timestamp()) \
             FROM {schema}.work w WHERE w.id = ANY ($1) ORDER BY w.id FOR UPDATE OF w SKIP LOCKED",
        );
        let locked = sqlx::query(lock).bind(&all).persistent(false).fetch_all(conn).await?;
        let mut free = Vec::with_capacity(locked.len());
        for row in &locked {
            let id: i64 = row.try_get(0)?;
            if row.try_get(1)? {
                return Ok(Some(WorkId(id)));
            }
            free.push(id);
        }
        Ok(all.into_iter().find(|id| !free.contains(id)).map(WorkId))
    }

    async fn conflicting_record(
        &self,
        conn: &mut PgConnection,
        moved: &SagaMigration,
    ) -> Result<Option<StepId>, sqlx::Error> {
        let select = self.sql("SELECT step FROM {schema}.records WHERE tenant = $1 AND key = $2");
        let there: Vec<String> = sqlx::query_scalar(select)
            .bind(moved.tenant.as_str())
            .bind(moved.key.as_str())
            .persistent(false)
            .fetch_all(conn)
            .await?;
        let has = |step: &StepId| there.iter().any(|there| there == step.as_str());
        let is_left = |step: &StepId| moved.rewritten.iter().any(|record| record.from == *step);
        let gone = moved.rewritten.iter().map(|record| &record.from).find(|step| !has(step));
        let renamed = moved.rewritten.iter().filter(|record| record.from != record.to).map(|record| &record.to);
        let mut new = renamed.chain(moved.records.iter().map(|record| &record.step));
        Ok(gone.or_else(|| new.find(|step| has(step) && !is_left(step))).cloned())
    }

    async fn is_expected(&self, conn: &mut PgConnection, moved: &SagaMigration) -> Result<bool, sqlx::Error> {
        let select = self.sql("SELECT version FROM {schema}.progress WHERE id = $1 FOR UPDATE");
        let version: Option<i64> =
            sqlx::query_scalar(select).bind(moved.saga.0).persistent(false).fetch_optional(conn).await?;
        Ok(version == Some(signed(moved.expected)))
    }

    async fn write_migration(
        &self,
        conn: &mut PgConnection,
        moved: &SagaMigration,
        number: i32,
    ) -> Result<(), sqlx::Error> {
        let sql = self.sql("UPDATE {schema}.sagas SET definition = $2, digest = $3 WHERE id = $1");
        let query = sqlx::query(sql).bind(moved.saga.0).bind(number).bind(&moved.digest[..]);
        query.persistent(false).execute(&mut *conn).await?;
        let sql = self.sql(
            "UPDATE {schema}.progress SET state = $2, version = version + 1, advanced_at = clock_timestamp() WHERE id = $1",
        );
        sqlx::query(sql).bind(moved.saga.0).bind(&*moved.state).persistent(false).execute(&mut *conn).await?;
        if !moved.withdrawn.is_empty() {
            let withdrawn: Vec<i64> = moved.withdrawn.iter().map(|work| work.0).collect();
            let sql = self.sql("DELETE FROM {schema}.work WHERE id = ANY ($1)");
            sqlx::query(sql).bind(withdrawn).persistent(false).execute(&mut *conn).await?;
        }
        let sql = self.sql(
            "UPDATE {schema}.work SET definition = $2, epoch = epoch + 1, \
             waiting = CASE WHEN waiting = epoch THEN epoch + 1 END WHERE saga = $1",
        );
        sqlx::query(sql).bind(moved.saga.0).bind(number).persistent(false).execute(&mut *conn).await?;
        self.rewrite_records(conn, moved).await?;
        let records = &moved.records;
        let sql = self.sql(
            "INSERT INTO {schema}.records (tenant, key, step, saga, outcome, position, attempts, recorded_at, took_micros, \
             output, error, input) SELECT $1, $2, r.step, $3, r.outcome, r.position, r.attempts, clock_timestamp(), r.took, \
             r.output, r.error, r.input FROM unnest($4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], \
             $9::bytea[], $10::bytea[], $11::bytea[]) r (step, outcome, position, attempts, took, output, error, input)",
        );
        let query = sqlx::query(sql)
            .bind(moved.tenant.as_str())
            .bind(moved.key.as_str())
            .bind(moved.saga.0)
            .bind(column(records, |record| record.step.as_str()))
            .bind(column(records, |record| record.outcome.as_str()))
            .bind(column(records, |record| i64::from(record.position)))
            .bind(column(records, |record| i64::from(record.attempts)))
            .bind(column(records, |record| micros(record.took)))
            .bind(column(records, |record| record.output.as_deref()))
            .bind(column(records, |record| record.error.as_deref()))
            .bind(column(records, |record| record.input.as_deref()));
        query.persistent(false).execute(&mut *conn).await?;
        for entry in &moved.history {
            let sql = self.sql(
                "INSERT INTO {schema}.history (saga, at, step, kind, attempt, detail) \
                 VALUES ($1, clock_timestamp(), $2, $3, $4, $5)",
            );
            let query = sqlx::query(sql)
                .bind(entry.saga.0)
                .bind(entry.step.as_ref().map(StepId::as_str))
                .bind(entry.kind.as_str())
                .bind(i64::from(entry.attempt))
                .bind(clean(&entry.detail));
            query.persistent(false).execute(&mut *conn).await?;
        }
        Ok(())
    }

    /// In two passes, since a record may get the name that another record had.
    async fn rewrite_records(&self, conn: &mut PgConnection, moved: &SagaMigration) -> Result<(), sqlx::Error> {
        if moved.rewritten.is_empty() {
            return Ok(());
        }
        let from: Vec<&str> = moved.rewritten.iter().map(|record| record.from.as_str()).collect();
        let between: Vec<String> = from.iter().map(|from| format!("{from} moves")).collect();
        let to: Vec<&str> = moved.rewritten.iter().map(|record| record.to.as_str()).collect();
        let outputs: Vec<Option<&[u8]>> = moved.rewritten.iter().map(|record| record.output.as_deref()).collect();
        let sql = self.sql(
            "UPDATE {schema}.records r SET step = c.becomes, output = coalesce(c.output, r.output), \
             input = coalesce(c.input, r.input) \
             FROM unnest($3::text[], $4::text[], $5::bytea[], $6::bytea[]) c (step, becomes, output, input) \
             WHERE r.tenant = $1 AND r.key = $2 AND r.step = c.step",
        );
        let inputs: Vec<Option<&[u8]>> = moved.rewritten.iter().map(|record| record.input.as_deref()).collect();
        let between: Vec<&str> = between.iter().map(String::as_str).collect();
        let nothing = vec![None; from.len()];
        for (steps, become_, outputs, inputs) in
            [(&from, &between, &nothing, &nothing), (&between, &to, &outputs, &inputs)]
        {
            let query = sqlx::query(sql.clone())
                .bind(moved.tenant.as_str())
                .bind(moved.key.as_str())
                .bind(steps)
                .bind(become_)
                .bind(outputs)
                .bind(inputs);
            query.persistent(false).execute(&mut *conn).await?;
        }
        Ok(())
    }
}
