//! What was in the outbox of a store that deletes each row in the transaction which inserted it.

use sqlx::{Executor as _, PgPool};
use uuid::Uuid;

/// Copies each row, since none can be read after its commit.
const COPY: &str = "\
    CREATE TABLE public.copied_outbox (LIKE saga.outbox);
    CREATE FUNCTION public.copy_row() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO public.copied_outbox SELECT NEW.*; RETURN NULL; END $$;
    CREATE TRIGGER copy_row AFTER INSERT ON saga.outbox FOR EACH ROW EXECUTE FUNCTION public.copy_row()";

/// A row of the outbox.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: Uuid,
    pub(crate) tenant: String,
    pub(crate) aggregatetype: String,
    pub(crate) aggregateid: String,
    pub(crate) event_type: String,
    pub(crate) position: i64,
    /// In microseconds since 1970.
    pub(crate) committed_at: i64,
    pub(crate) payload: Vec<u8>,
    pub(crate) kind: String,
    pub(crate) headers: String,
}

/// Copies the rows from now on.
pub(crate) async fn copy_rows(pool: &PgPool) {
    pool.execute(sqlx::raw_sql(COPY)).await.unwrap();
}

/// The columns in the order of the fields.
type Columns = (Uuid, String, String, String, String, i64, i64, Vec<u8>, String, String);

/// The committed rows.
pub(crate) async fn rows(pool: &PgPool) -> Vec<Row> {
    let sql = "SELECT id, tenant, aggregatetype, aggregateid, type, position, \
         (extract(epoch FROM committed_at) * 1000000)::bigint, payload, kind, headers \
         FROM public.copied_outbox ORDER BY seq";
    let rows: Vec<Columns> = sqlx::query_as(sql).fetch_all(pool).await.unwrap();
    rows.into_iter().map(Row::from).collect()
}

/// Inserts a row as the store does, and deletes it in the same transaction.
pub(crate) async fn send(pool: &PgPool, row: &Row) {
    let insert = "INSERT INTO saga.outbox \
             (id, lane, tenant, aggregatetype, aggregateid, type, position, committed_at, payload, kind, headers) \
         VALUES ($1, 0, $2, $3, $4, $5, $6, to_timestamp($7 / 1000000.0), $8, $9, $10)";
    let mut tx = pool.begin().await.unwrap();
    let insert = sqlx::query(insert)
        .bind(row.id)
        .bind(&row.tenant)
        .bind(&row.aggregatetype)
        .bind(&row.aggregateid)
        .bind(&row.event_type)
        .bind(row.position)
        .bind(row.committed_at)
        .bind(&row.payload)
        .bind(&row.kind)
        .bind(&row.headers);
    insert.execute(&mut *tx).await.unwrap();
    sqlx::query("DELETE FROM saga.outbox WHERE id = $1").bind(row.id).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
}

impl From<Columns> for Row {
    fn from(columns: Columns) -> Self {
        let (id, tenant, aggregatetype, aggregateid, event_type, position, committed_at, payload, kind, headers) =
            columns;
        Self { id, tenant, aggregatetype, aggregateid, event_type, position, committed_at, payload, kind, headers }
    }
}
