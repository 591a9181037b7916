use std::collections::BTreeSet;

use async_trait::async_trait;
use saga_core::store::{Archive, ArchiveBatch, ArchiveError, ArchivedSaga};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use crate::PostgresStore;
use crate::schema::schema::for_schema;

/// Keeps purged sagas in the table `archived_sagas` of the store's schema, which is partitioned by the month in which they
/// ended. The table and the partitions are created when they are needed.
///
/// The columns are `ended_at`, `id`, `revision`, `tenant`, `key`, `saga`, `status`, and `content`, the whole saga as JSON. A
/// saga that is archived again is there once. To delete a month, drop its partition, such as `archived_sagas_2026_01`.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use saga_core::Runtime;
/// use saga_postgres::{PostgresStore, TableArchive};
///
/// let store = PostgresStore::connect("postgres://localhost/shop").await?;
/// let archive = TableArchive::new(&store);
/// let runtime = Runtime::builder(store).archive(archive).start().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TableArchive {
    store: PostgresStore,
}

impl TableArchive {
    /// Keeps the sagas of this store in its own schema.
    pub fn new(store: &PostgresStore) -> Self {
        Self { store: store.clone() }
    }

    async fn run(&self, conn: &mut PgConnection, sql: &str) -> Result<(), ArchiveError> {
        conn.execute(sqlx::raw_sql(AssertSqlSafe(for_schema(sql, &self.store.shared().options)))).await?;
        Ok(())
    }

    /// Creates the table and the partitions of these months.
    async fn create(&self, conn: &mut PgConnection, months: &BTreeSet<Month>) -> Result<(), ArchiveError> {
        self.run(
            conn,
            "CREATE TABLE IF NOT EXISTS {schema}.archived_sagas (
                ended_at timestamptz NOT NULL, id bigint NOT NULL, revision bigint NOT NULL,
                tenant text NOT NULL, key text COLLATE \"C\" NOT NULL, saga text NOT NULL, status text NOT NULL,
                content json NOT NULL, PRIMARY KEY (id, revision, ended_at)) PARTITION BY RANGE (ended_at);
             CREATE INDEX IF NOT EXISTS archived_sagas_key ON {schema}.archived_sagas (tenant, key)",
        )
        .await?;
        for month in months {
            let (name, from, to) = (month.name(), month.first_day(), month.next().first_day());
            let partition = format!(
                "CREATE TABLE IF NOT EXISTS {{schema}}.archived_sagas_{name} PARTITION OF {{schema}}.archived_sagas \
                 FOR VALUES FROM ('{from} 00:00:00+00') TO ('{to} 00:00:00+00')"
            );
            self.run(conn, &partition).await?;
        }
        Ok(())
    }

    async fn insert(&self, conn: &mut PgConnection, sagas: &[ArchivedSaga]) -> Result<(), ArchiveError> {
        let of = |text: fn(&ArchivedSaga) -> String| sagas.iter().map(text).collect::<Vec<_>>();
        let contents = sagas.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let sql = self.store.sql(
            "INSERT INTO {schema}.archived_sagas (ended_at, id, revision, tenant, key, saga, status, content) \
             SELECT a.ended_at::timestamptz, a.id, a.revision, a.tenant, a.key, a.saga, a.status, a.content::json \
             FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[]) \
             a (ended_at, id, revision, tenant, key, saga, status, content) ON CONFLICT (id, revision, ended_at) \
             DO UPDATE SET status = excluded.status, content = excluded.content",
        );
        sqlx::query(sql)
            .persistent(false)
            .bind(of(|saga| saga.ended_at.unwrap_or_default().to_string()))
            .bind(sagas.iter().map(|saga| saga.id.0).collect::<Vec<i64>>())
            .bind(sagas.iter().map(|saga| i64::try_from(saga.revision).unwrap_or(i64::MAX)).collect::<Vec<i64>>())
            .bind(of(|saga| saga.tenant.as_str().to_owned()))
            .bind(of(|saga| saga.key.as_str().to_owned()))
            .bind(of(|saga| saga.saga.clone()))
            .bind(of(|saga| saga.status.as_str().to_owned()))
            .bind(contents)
            .execute(conn)
            .await?;
        Ok(())
    }
}

#[async_trait]
impl Archive for TableArchive {
    async fn store(&self, batch: &ArchiveBatch) -> Result<(), ArchiveError> {
        let months: BTreeSet<Month> = batch.sagas().iter().map(Month::of).collect();
        self.store
            .write(async |conn| {
                self.create(conn, &months).await?;
                self.insert(conn, batch.sagas()).await
            })
            .await
    }
}

/// A month of the calendar, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Month {
    year: i64,
    month: i64,
}

impl Month {
    fn of(saga: &ArchivedSaga) -> Self {
        let text = saga.ended_at.unwrap_or_default().to_string();
        let mut numbers = text.split('-').map(|number| number.parse().unwrap_or(1));
        Self { year: numbers.next().unwrap_or(1970), month: numbers.next().unwrap_or(1) }
    }

    fn next(self) -> Self {
        if self.month == 12 { Self { year: self.year + 1, month: 1 } } else { Self { month: self.month + 1, ..self } }
    }

    fn name(self) -> String {
        format!("{:04}_{:02}", self.year, self.month)
    }

    fn first_day(self) -> String {
        format!("{:04}-{:02}-01", self.year, self.month)
    }
}
