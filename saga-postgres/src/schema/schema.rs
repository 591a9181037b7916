//! The runtime's tables, in numbered migrations that the table `migrations` of the schema records.

use std::time::Duration;

use saga_core::store::{StoreError, StoreErrorKind};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Postgres, Row as _, Transaction};

use crate::error::{is_conflict, sentence};
use crate::options::PostgresOptions;
use crate::schema::migrations::{LATEST, LOCK_CLASS, MIGRATIONS, Migration, READ_COMMITTED, TABLES};
use crate::schema::online_index::{Turn, build};

/// How long a migration waits for a table: other sessions that need the table wait behind it meanwhile.
const SET_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = 500";
/// The time between two tries, in which other sessions can use the tables.
const MIGRATION_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Why a migration failed: an error of the server, or a schema that is refused.
pub(crate) enum Failure {
    Sql(sqlx::Error),
    Refused(StoreError),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

/// Brings the schema to this version. Several processes that start at once take turns. A migration locks tables that
/// other processes use: it waits only shortly, and is tried again.
pub(crate) async fn migrate(conn: &mut PgConnection, options: &PostgresOptions) -> Result<(), Failure> {
    for tries in 1.. {
        match migrate_once(conn, options).await {
            Err(Failure::Sql(error)) if is_conflict(&error) && tries >= options.migration_tries => {
                let detail = format!(
                    "schema {:?} could not be brought to migration {LATEST}: {tries} times another session held one of its \
                     tables ({}); end what holds it, such as a dump or a long transaction, and start again",
                    options.schema,
                    sentence(&error)
                );
                let error = StoreError::new(StoreErrorKind::Conflict, "open", detail).with_source(error);
                return Err(Failure::Refused(error));
            }
            Err(Failure::Sql(error)) if is_conflict(&error) => {
                tracing::warn!(schema = options.schema, attempt = tries, %error, "migration waits for a lock");
                tokio::time::sleep(MIGRATION_RETRY_DELAY).await;
            }
            migrated => return migrated,
        }
    }
    Ok(())
}

async fn migrate_once(conn: &mut PgConnection, options: &PostgresOptions) -> Result<(), Failure> {
    // An up-to-date schema is only read, which needs no rights to write.
    let mut tx = conn.begin_with(READ_COMMITTED).await?;
    match missing(&mut tx, options).await?.len() {
        0 => Ok(tx.commit().await?),
        all if all == MIGRATIONS.len() => create(tx, options).await,
        _ => {
            tx.commit().await?;
            upgrade(conn, options).await
        }
    }
}

/// Creates the schema in one transaction. Its tables are empty, so their indexes are built at once.
async fn create(mut tx: Transaction<'_, Postgres>, options: &PostgresOptions) -> Result<(), Failure> {
    sqlx::query("SELECT pg_advisory_xact_lock($1, hashtext($2))")
        .bind(LOCK_CLASS)
        .bind(&options.schema)
        .persistent(false)
        .execute(&mut *tx)
        .await?;
    tx.execute(SET_LOCK_TIMEOUT).await?;
    // Another process may have created it before this one got the lock.
    for migration in missing(&mut tx, options).await? {
        if migration.number == 1 {
            create_journal(&mut tx, options).await?;
        }
        tx.execute(sqlx::raw_sql(AssertSqlSafe(for_schema(migration.sql, options)))).await?;
        for index in migration.indexes {
            tx.execute(sqlx::raw_sql(AssertSqlSafe(for_schema(&index.create(""), options)))).await?;
        }
        note(&mut tx, migration, options).await?;
    }
    Ok(tx.commit().await?)
}

/// Applies the migrations that are missing while other processes work. The tables change in a transaction; then the
/// indexes are built without a lock that keeps others from writing; and a migration is noted when all of it is done. A
/// process that ends in between leaves what the next one goes on with.
async fn upgrade(conn: &mut PgConnection, options: &PostgresOptions) -> Result<(), Failure> {
    let turn = Turn::take(options).await?;
    // Another process may have migrated before it was this one's turn.
    for migration in missing(conn, options).await? {
        let mut tx = conn.begin_with(READ_COMMITTED).await?;
        tx.execute(SET_LOCK_TIMEOUT).await?;
        tx.execute(sqlx::raw_sql(AssertSqlSafe(for_schema(migration.sql, options)))).await?;
        if migration.indexes.is_empty() {
            note(&mut tx, migration, options).await?;
        }
        tx.commit().await?;
        if !migration.indexes.is_empty() {
            build(migration.indexes, options).await?;
            note(conn, migration, options).await?;
        }
    }
    Ok(turn.end().await?)
}

async fn note(conn: &mut PgConnection, migration: &Migration, options: &PostgresOptions) -> Result<(), sqlx::Error> {
    let note = for_schema("INSERT INTO {schema}.migrations (number, name) VALUES ($1, $2)", options);
    let note = sqlx::query(AssertSqlSafe(note)).bind(migration.number).bind(options.clock.name_of(migration.name));
    note.persistent(false).execute(conn).await.map(drop)
}

/// Requires the schema of this version; changes nothing.
pub(crate) async fn require(conn: &mut PgConnection, options: &PostgresOptions) -> Result<(), Failure> {
    let mut tx = conn.begin_with(options.begin()).await?;
    let missing = missing(&mut tx, options).await?;
    tx.commit().await?;
    let schema = &options.schema;
    match missing.len() {
        0 => Ok(()),
        all if all == MIGRATIONS.len() => {
            let detail = format!("there is no schema {schema:?} with sagas here; name the one that a runtime works on");
            Err(refused(StoreErrorKind::NotAStore, detail))
        }
        some => {
            let found = MIGRATIONS.len() - some;
            let detail = format!(
                "schema {schema:?} is at migration {found}, and this version reads {LATEST}; open it once for writing"
            );
            Err(refused(StoreErrorKind::NotWritable, detail))
        }
    }
}

/// A statement for a schema.
pub(crate) fn for_schema(sql: &str, options: &PostgresOptions) -> String {
    options.render(sql.to_owned())
}

async fn create_journal(conn: &mut PgConnection, options: &PostgresOptions) -> Result<(), sqlx::Error> {
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)")
        .bind(&options.schema)
        .persistent(false)
        .fetch_one(&mut *conn)
        .await?;
    // A schema that exists needs no right to create one.
    let create = if exists { "" } else { "CREATE SCHEMA {schema};" };
    let clock = options.clock.create();
    let journal = "CREATE TABLE {schema}.migrations (number integer PRIMARY KEY, name text NOT NULL, \
         applied_at timestamptz NOT NULL DEFAULT clock_timestamp())";
    conn.execute(sqlx::raw_sql(AssertSqlSafe(for_schema(&format!("{create}{clock}{journal}"), options)))).await?;
    Ok(())
}

/// The migrations that are not applied yet. Refuses a schema that no version of this program leaves behind.
async fn missing(conn: &mut PgConnection, options: &PostgresOptions) -> Result<Vec<&'static Migration>, Failure> {
    let tables = tables(conn, options).await?;
    let has_journal = tables.iter().any(|table| table == "migrations");
    let applied = if has_journal { applied(conn, options).await? } else { Vec::new() };
    let schema = &options.schema;
    if let Some((newest, _)) = applied.last().filter(|(number, _)| *number > LATEST) {
        let detail = format!(
            "schema {schema:?} is at migration {newest}, written by a newer version; this one knows migrations up to \
             {LATEST}: update this program"
        );
        return Err(refused(StoreErrorKind::NewerSchema, detail));
    }
    let is_in_order = applied
        .iter()
        .zip(&MIGRATIONS)
        .all(|((number, name), known)| *number == known.number && name == options.clock.name_of(known.name));
    let made = TABLES.iter().filter(|(since, _)| applied.iter().any(|(number, _)| number == since));
    let has = |name: &str| tables.iter().any(|table| table == name);
    let lacking: Vec<&str> = made.map(|(_, table)| *table).filter(|table| !has(table)).collect();
    let is_whole = if applied.is_empty() { !TABLES.iter().any(|(_, table)| has(table)) } else { lacking.is_empty() };
    if !is_in_order || !is_whole {
        let found = match (applied.is_empty(), lacking.first()) {
            (true, _) => "holds tables of the runtime without a record of any migration".to_owned(),
            (false, Some(table)) => format!("has no table {table:?} although its migrations are recorded as applied"),
            (false, None) => "records migrations that this program does not know".to_owned(),
        };
        let detail = format!(
            "schema {schema:?} {found}: a migration was applied partly, or by hand; restore it, or name another schema"
        );
        return Err(refused(StoreErrorKind::Corrupt, detail));
    }
    Ok(MIGRATIONS.iter().skip(applied.len()).collect())
}

async fn tables(conn: &mut PgConnection, options: &PostgresOptions) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT tablename::text FROM pg_tables WHERE schemaname = $1")
        .bind(&options.schema)
        .persistent(false)
        .fetch_all(conn)
        .await
}

async fn applied(conn: &mut PgConnection, options: &PostgresOptions) -> Result<Vec<(i32, String)>, sqlx::Error> {
    let select = for_schema("SELECT number, name FROM {schema}.migrations ORDER BY number", options);
    let rows = sqlx::query(AssertSqlSafe(select)).persistent(false).fetch_all(conn).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

fn refused(kind: StoreErrorKind, detail: String) -> Failure {
    Failure::Refused(StoreError::new(kind, "open", detail))
}
