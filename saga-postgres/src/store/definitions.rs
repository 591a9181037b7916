//! Definitions, as they were when a process first registered them, and their numbers.

use async_trait::async_trait;
use saga_core::store::{
    Applied, DefinitionId, NewDefinition, SagaMigration, SagaWithSteps, StoreError, StoreErrorKind, StoredDefinition,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use crate::error::store_error;
use crate::rows::definition_numbers::Numbers;
use crate::rows::rows::{self, FromRow};
use crate::store::lock_wait::LockWait;
use crate::store::store::PostgresStore;

const REGISTER: &str = "register";

#[async_trait]
impl saga_core::store::Definitions for PostgresStore {
    async fn register(&self, definitions: Vec<NewDefinition>) -> Result<Vec<StoredDefinition>, StoreError> {
        let known = self.definitions().await?;
        let find =
            |new: &NewDefinition| known.iter().find(|known| known.id == new.id && known.digest == new.digest).cloned();
        // Nearly always nothing has changed, and then nothing is locked.
        if let Some(known) = definitions.iter().map(find).collect() {
            return Ok(known);
        }
        let store = self.clone();
        let registered = self.in_transaction(REGISTER, move |conn| {
            Box::pin(async move {
                // In one order, so that two processes that start at once do not wait for each other.
                let mut order: Vec<usize> = (0..definitions.len()).collect();
                order.sort_by_key(|index| &definitions[*index].id);
                let wanted = order.iter().map(|index| definitions[*index].id.clone());
                let numbers =
                    store.number_definitions(conn, REGISTER, wanted, LockWait::AsInTransaction, false).await?;
                let mut stored = vec![None; definitions.len()];
                for index in order {
                    let number = numbers.of(REGISTER, &definitions[index].id)?;
                    stored[index] = Some(store.register_one(conn, number, &definitions[index]).await?);
                }
                Ok((stored, numbers))
            })
        });
        let (stored, numbers) = registered.await?;
        self.remember_definitions(&numbers);
        let missing_definition =
            || StoreError::new(StoreErrorKind::Corrupt, REGISTER, "a definition that was just registered is gone");
        stored.into_iter().map(|stored| stored.ok_or_else(missing_definition)).collect()
    }

    async fn definitions(&self) -> Result<Vec<StoredDefinition>, StoreError> {
        let sql = "SELECT name, version, digest, shape FROM {schema}.definitions WHERE shape IS NOT NULL \
             ORDER BY name, version";
        let rows = self.read_rows("definitions", sqlx::query(self.sql(sql))).await?;
        rows.iter()
            .map(StoredDefinition::from_row)
            .collect::<Result<_, _>>()
            .map_err(|error| store_error("definitions", error))
    }

    async fn unfinished(&self, definitions: &[DefinitionId], limit: usize) -> Result<Vec<SagaWithSteps>, StoreError> {
        self.sample_unfinished(definitions, limit).await
    }

    async fn migrate(&self, moved: SagaMigration) -> Result<Applied, StoreError> {
        self.migrate_saga(moved).await
    }
}

impl FromRow for StoredDefinition {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let id = DefinitionId { name: rows::text(row, 0)?.into(), version: rows::narrow(row, 1)? };
        Ok(Self { id, digest: digest(row, 2)?, shape: row.try_get(3)? })
    }
}

fn digest(row: &PgRow, index: usize) -> Result<[u8; 32], sqlx::Error> {
    let digest: &[u8] = row.try_get(index)?;
    digest.try_into().map_err(|_| rows::unreadable(index, "a digest has 32 bytes"))
}

impl PostgresStore {
    /// The transaction that gave these numbers is committed.
    pub(crate) fn remember_definitions(&self, numbers: &Numbers) {
        self.shared().definitions.remember(numbers);
    }

    /// The numbers of definitions. Definitions to which no row ever referred are left out.
    pub(crate) async fn known_definitions(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        wanted: impl Iterator<Item = DefinitionId>,
    ) -> Result<Numbers, StoreError> {
        let definitions = &self.shared().definitions;
        let (mut numbers, missing) = definitions.known(wanted);
        if !missing.is_empty() {
            self.look_up(conn, operation, missing, &mut numbers).await?;
            // Numbers that another transaction committed stay valid.
            self.remember_definitions(&numbers);
        }
        Ok(numbers)
    }

    /// The numbers of definitions. Definitions without a number are given one. `is_committed` says that the connection
    /// is outside a transaction, so that the numbers are valid from now on.
    pub(crate) async fn number_definitions(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        wanted: impl Iterator<Item = DefinitionId>,
        lock_wait: LockWait,
        is_committed: bool,
    ) -> Result<Numbers, StoreError> {
        let definitions = &self.shared().definitions;
        let (mut numbers, missing) = definitions.known(wanted);
        if missing.is_empty() {
            return Ok(numbers);
        }
        let (names, versions) = columns(&missing);
        let limit = match lock_wait {
            LockWait::Short => format!("{} CROSS JOIN ", self.short_wait()),
            LockWait::AsInTransaction => String::new(),
        };
        let insert = self.sql(&format!(
            "INSERT INTO {{schema}}.definitions (name, version) \
             SELECT d.* FROM {limit}unnest($1::text[], $2::bigint[]) d (name, version) \
             WHERE NOT EXISTS (SELECT 1 FROM {{schema}}.definitions e WHERE e.name = d.name AND e.version = d.version) \
             ON CONFLICT (name, version) DO NOTHING",
        ));
        let inserted = sqlx::query(insert).bind(names).bind(versions).persistent(false).execute(&mut *conn).await;
        inserted.map_err(|error| store_error(operation, error))?;
        // A second statement sees the rows that another transaction inserted meanwhile.
        self.look_up(conn, operation, missing, &mut numbers).await?;
        if is_committed {
            self.remember_definitions(&numbers);
        }
        Ok(numbers)
    }

    async fn register_one(
        &self,
        conn: &mut PgConnection,
        number: i32,
        new: &NewDefinition,
    ) -> Result<StoredDefinition, StoreError> {
        let failed = |error| store_error(REGISTER, error);
        let select = self.sql("SELECT name, version, digest, shape FROM {schema}.definitions WHERE id = $1 FOR UPDATE");
        let row = sqlx::query(select).bind(number).persistent(false).fetch_one(&mut *conn).await.map_err(failed)?;
        let is_kept = row.try_get::<Option<&str>, _>(3).map_err(failed)?.is_some();
        if is_kept {
            let known = StoredDefinition::from_row(&row).map_err(failed)?;
            let started = self.sql("SELECT EXISTS (SELECT 1 FROM {schema}.sagas WHERE definition = $1)");
            let was_started = sqlx::query_scalar(started).bind(number).persistent(false);
            if known.digest == new.digest || was_started.fetch_one(&mut *conn).await.map_err(failed)? {
                return Ok(known);
            }
        } else {
            let other = self.sql(
                "SELECT s.digest FROM {schema}.progress p JOIN {schema}.sagas s ON s.id = p.id \
                 WHERE p.ended_at IS NULL AND s.definition = $1 AND s.digest <> $2 LIMIT 1",
            );
            let other = sqlx::query(other).bind(number).bind(&new.digest[..]).persistent(false);
            if let Some(row) = other.fetch_optional(&mut *conn).await.map_err(failed)? {
                let digest = digest(&row, 0).map_err(failed)?;
                return Ok(StoredDefinition { id: new.id.clone(), digest, shape: None });
            }
        }
        let update = self.sql("UPDATE {schema}.definitions SET digest = $2, shape = $3 WHERE id = $1");
        let update = sqlx::query(update).bind(number).bind(&new.digest[..]).bind(&*new.shape).persistent(false);
        update.execute(conn).await.map_err(failed)?;
        Ok(StoredDefinition { id: new.id.clone(), digest: new.digest, shape: Some(new.shape.clone()) })
    }

    async fn look_up(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        missing: Vec<DefinitionId>,
        numbers: &mut Numbers,
    ) -> Result<(), StoreError> {
        let (names, versions) = columns(&missing);
        let select = self.sql(
            "SELECT u.place, d.id FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY u (name, version, place) \
             JOIN {schema}.definitions d ON d.name = u.name AND d.version = u.version",
        );
        let rows = sqlx::query(select).bind(names).bind(versions).persistent(false).fetch_all(&mut *conn).await;
        for row in rows.map_err(|error| store_error(operation, error))? {
            let read = |row: &PgRow| Ok::<_, sqlx::Error>((row.try_get::<i64, _>(0)?, row.try_get(1)?));
            let (index, number) = read(&row).map_err(|error| store_error(operation, error))?;
            if let Some(definition) = usize::try_from(index - 1).ok().and_then(|index| missing.get(index)) {
                numbers.insert(definition.clone(), number);
            }
        }
        Ok(())
    }
}

fn columns(definitions: &[DefinitionId]) -> (Vec<String>, Vec<i64>) {
    definitions.iter().map(|definition| (definition.name.to_string(), i64::from(definition.version))).unzip()
}
