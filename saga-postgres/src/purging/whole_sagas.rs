//! Sagas with their sub-sagas, and all that is known of them.

use std::collections::HashMap;

use saga_core::store::{SagaId, SagaRow, SagaWithSteps, StepRecord, StoreError, WorkStatus};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use crate::error::store_error;
use crate::rows::rows::{self, FromRow, SELECT_SAGAS, WORK_COLUMNS, select_work};
use crate::store::sagas::history_entry;
use crate::store::store::PostgresStore;

const OPERATION: &str = "whole_sagas";

/// The sagas `$1` in this order, each followed by its sub-sagas in the order of their keys. `?` is the character behind `>`.
const FAMILIES: &str = "JOIN ( \
         SELECT i.place, o.id FROM unnest($1::bigint[]) WITH ORDINALITY i (id, place) \
         JOIN {schema}.sagas o ON o.id = i.id \
         UNION ALL \
         SELECT i.place, s.id FROM unnest($1::bigint[]) WITH ORDINALITY i (id, place) \
         JOIN {schema}.sagas o ON o.id = i.id CROSS JOIN LATERAL ( \
             SELECT s.id FROM {schema}.sagas s \
             WHERE s.tenant = o.tenant AND s.key > o.key || '>' AND s.key < o.key || '?' OFFSET 0) s) f \
     ON f.id = s.id ORDER BY f.place, s.key";

const RECORDS: &str = "SELECT r.step, r.outcome, r.output, r.error, r.input, r.position, r.attempts, r.recorded_at, \
         r.took_micros, i.id FROM unnest($1::bigint[]) i (id) JOIN {schema}.sagas s ON s.id = i.id \
     JOIN {schema}.records r ON r.tenant = s.tenant AND r.key = s.key ORDER BY r.position, r.step";

const HISTORY: &str = "SELECT at, step, kind, attempt, detail, saga FROM {schema}.history \
     WHERE saga = ANY ($1) ORDER BY id";

pub(crate) async fn read_whole_sagas(
    store: &PostgresStore,
    sagas: &[SagaId],
) -> Result<Vec<SagaWithSteps>, StoreError> {
    let (reader, ids) = (store.clone(), sagas.iter().map(|saga| saga.0).collect());
    // Several statements that must see one state.
    store
        .in_transaction(OPERATION, move |conn| {
            Box::pin(async move { families(&reader, conn, ids).await.map_err(|error| store_error(OPERATION, error)) })
        })
        .await
}

async fn families(
    store: &PostgresStore,
    conn: &mut PgConnection,
    ids: Vec<i64>,
) -> Result<Vec<SagaWithSteps>, sqlx::Error> {
    let set = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";
    sqlx::query(set).persistent(false).execute(&mut *conn).await?;
    let families = rows_of_sagas(store, conn, &format!("{SELECT_SAGAS} {FAMILIES}"), ids).await?;
    let sagas: Vec<SagaRow> = families.iter().map(SagaRow::from_row).collect::<Result<_, _>>()?;
    let ids: Vec<i64> = sagas.iter().map(|saga| saga.id.0).collect();
    let records = rows_of_sagas(store, conn, RECORDS, ids.clone()).await?;
    let mut records = by_saga(&records, 9, |_, row| StepRecord::from_row(row))?;
    let history = rows_of_sagas(store, conn, HISTORY, ids.clone()).await?;
    let mut history = by_saga(&history, 5, history_entry)?;
    let work = select_work(&format!("{WORK_COLUMNS}, saga"), "IN (SELECT unnest($1::bigint[]))");
    let work = rows_of_sagas(store, conn, &work, ids).await?;
    let mut work = by_saga(&work, 14, |_, row| WorkStatus::from_row(row))?;
    let now = sqlx::query(store.sql("SELECT clock_timestamp()")).persistent(false).fetch_one(&mut *conn).await?;
    let read_at = rows::moment(&now, 0)?;
    let whole = sagas.into_iter().map(|saga| SagaWithSteps {
        records: records.remove(&saga.id).unwrap_or_default(),
        history: history.remove(&saga.id).unwrap_or_default(),
        work: work.remove(&saga.id).unwrap_or_default(),
        read_at,
        saga,
    });
    Ok(whole.collect())
}

async fn rows_of_sagas(
    store: &PostgresStore,
    conn: &mut PgConnection,
    sql: &str,
    sagas: Vec<i64>,
) -> Result<Vec<PgRow>, sqlx::Error> {
    sqlx::query(store.sql(sql)).bind(sagas).persistent(false).fetch_all(conn).await
}

/// The values of rows by their saga, whose id is in that column.
fn by_saga<T>(
    rows: &[PgRow],
    column: usize,
    read: impl Fn(SagaId, &PgRow) -> Result<T, sqlx::Error>,
) -> Result<HashMap<SagaId, Vec<T>>, sqlx::Error> {
    let mut values: HashMap<SagaId, Vec<T>> = HashMap::new();
    for row in rows {
        let saga = SagaId(row.try_get(column)?);
        values.entry(saga).or_default().push(read(saga, row)?);
    }
    Ok(values)
}
