//! Definitions as numbers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use saga_core::store::{DefinitionId, StoreError};
use sqlx::{PgConnection, Row as _};

use crate::error::{misuse, store_error};
use crate::store::PostgresStore;

/// The numbers that are committed, as far as this process met them.
#[derive(Debug, Default)]
pub(crate) struct Definitions(Mutex<HashMap<DefinitionId, i32>>);

/// Numbers for one call.
#[derive(Debug, Default)]
pub(crate) struct Numbers(HashMap<DefinitionId, i32>);

impl Numbers {
    pub(crate) fn of(&self, operation: &'static str, definition: &DefinitionId) -> Result<i32, StoreError> {
        self.0.get(definition).copied().ok_or_else(|| misuse(operation, format!("{definition} was given no number")))
    }

    pub(crate) fn all(&self) -> Vec<i32> {
        self.0.values().copied().collect()
    }
}

impl Definitions {
    fn lock(&self) -> MutexGuard<'_, HashMap<DefinitionId, i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn met(&self, wanted: impl Iterator<Item = DefinitionId>) -> (Numbers, Vec<DefinitionId>) {
        let known = self.lock();
        let (mut numbers, mut missing) = (Numbers::default(), Vec::new());
        for definition in wanted {
            match known.get(&definition) {
                Some(number) => _ = numbers.0.insert(definition, *number),
                None if missing.contains(&definition) => {}
                None => missing.push(definition),
            }
        }
        (numbers, missing)
    }
}

impl PostgresStore {
    /// What a transaction numbered is committed.
    pub(crate) fn remember_definitions(&self, numbers: &Numbers) {
        let known = numbers.0.iter().map(|(definition, number)| (definition.clone(), *number));
        self.shared().definitions.lock().extend(known);
    }

    /// The numbers of those definitions that any row ever referred to.
    pub(crate) async fn known_definitions(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        wanted: impl Iterator<Item = DefinitionId>,
    ) -> Result<Numbers, StoreError> {
        let definitions = &self.shared().definitions;
        let (mut numbers, missing) = definitions.met(wanted);
        if !missing.is_empty() {
            self.look_up(conn, operation, missing, &mut numbers).await?;
            // What another transaction committed stays.
            self.remember_definitions(&numbers);
        }
        Ok(numbers)
    }

    /// The numbers of definitions, which are given one if they have none. `is_committed` says that the connection is
    /// outside a transaction, so that they can be relied on from now on.
    pub(crate) async fn number_definitions(
        &self,
        conn: &mut PgConnection,
        operation: &'static str,
        wanted: impl Iterator<Item = DefinitionId>,
        is_committed: bool,
    ) -> Result<Numbers, StoreError> {
        let definitions = &self.shared().definitions;
        let (mut numbers, missing) = definitions.met(wanted);
        if missing.is_empty() {
            return Ok(numbers);
        }
        let (names, versions) = columns(&missing);
        let insert = self.sql(
            "INSERT INTO {schema}.definitions (name, version) SELECT * FROM unnest($1::text[], $2::bigint[]) d (name, version) \
             WHERE NOT EXISTS (SELECT 1 FROM {schema}.definitions e WHERE e.name = d.name AND e.version = d.version) \
             ON CONFLICT (name, version) DO NOTHING",
        );
        let inserted = sqlx::query(insert).bind(names).bind(versions).persistent(false).execute(&mut *conn).await;
        inserted.map_err(|error| store_error(operation, error))?;
        // A second statement: it sees what another transaction inserted meanwhile.
        self.look_up(conn, operation, missing, &mut numbers).await?;
        if is_committed {
            self.remember_definitions(&numbers);
        }
        Ok(numbers)
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
            let read = |row: &sqlx::postgres::PgRow| Ok::<_, sqlx::Error>((row.try_get::<i64, _>(0)?, row.try_get(1)?));
            let (place, number) = read(&row).map_err(|error| store_error(operation, error))?;
            if let Some(definition) = usize::try_from(place - 1).ok().and_then(|place| missing.get(place)) {
                numbers.0.insert(definition.clone(), number);
            }
        }
        Ok(())
    }
}

fn columns(definitions: &[DefinitionId]) -> (Vec<String>, Vec<i64>) {
    definitions.iter().map(|definition| (definition.name.to_string(), i64::from(definition.version))).unzip()
}
