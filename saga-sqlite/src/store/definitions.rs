//! Definitions, as they were when a process first registered them.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row};
use saga_core::store::{
    Applied, DefinitionId, NewDefinition, SagaMigration, SagaWithSteps, StoreError, StoredDefinition,
};

use crate::statements::migrate_saga;
use crate::statements::rows::{self, FromRow};
use crate::statements::unfinished::unfinished;
use crate::store::store::SqliteStore;
use crate::writer::session::Session;

#[async_trait]
impl saga_core::store::Definitions for SqliteStore {
    async fn register(&self, definitions: Vec<NewDefinition>) -> Result<Vec<StoredDefinition>, StoreError> {
        self.call("register", move |session| {
            Ok(definitions.iter().map(|new| register(session, new)).collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn definitions(&self) -> Result<Vec<StoredDefinition>, StoreError> {
        self.query("definitions", |conn| {
            conn.prepare_cached(
                "SELECT name, version, digest, shape FROM saga_definitions WHERE shape IS NOT NULL ORDER BY name, version",
            )?
            .query_map((), StoredDefinition::from_row)?
            .collect()
        })
        .await
    }

    async fn unfinished(&self, definitions: &[DefinitionId], limit: usize) -> Result<Vec<SagaWithSteps>, StoreError> {
        let (definitions, read_at) = (definitions.to_vec(), self.now());
        self.query("unfinished", move |conn| unfinished(conn, &definitions, limit, read_at)).await
    }

    async fn migrate(&self, moved: SagaMigration) -> Result<Applied, StoreError> {
        self.call("migrate", move |session| migrate_saga::migrate(session, &moved)).await
    }
}

impl FromRow for StoredDefinition {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let id = DefinitionId { name: rows::text(row, 0)?.into(), version: row.get(1)? };
        Ok(Self { id, digest: row.get(2)?, shape: row.get(3)? })
    }
}

fn register(session: &mut Session, new: &NewDefinition) -> rusqlite::Result<StoredDefinition> {
    let number = session.definitions.number(&session.conn, &new.id)?;
    let conn = &session.conn;
    let known: Option<StoredDefinition> = conn
        .prepare_cached(
            "SELECT name, version, digest, shape FROM saga_definitions WHERE id = ?1 AND shape IS NOT NULL",
        )?
        .query_row([number], StoredDefinition::from_row)
        .optional()?;
    let kept = match known {
        Some(known) if known.digest == new.digest || was_started(conn, number)? => Some(known),
        Some(_) => None,
        None => other_digest(conn, number, &new.digest)?.map(|digest| StoredDefinition {
            id: new.id.clone(),
            digest,
            shape: None,
        }),
    };
    if let Some(kept) = kept {
        return Ok(kept);
    }
    conn.prepare_cached("UPDATE saga_definitions SET digest = ?2, shape = ?3 WHERE id = ?1")?.execute((
        number,
        new.digest,
        &*new.shape,
    ))?;
    Ok(StoredDefinition { id: new.id.clone(), digest: new.digest, shape: Some(new.shape.clone()) })
}

fn was_started(conn: &Connection, number: i64) -> rusqlite::Result<bool> {
    let found = conn
        .prepare_cached("SELECT 1 FROM saga_sagas WHERE definition = ?1 LIMIT 1")?
        .query_row([number], |_| Ok(()))
        .optional()?;
    Ok(found.is_some())
}

/// The digest of a saga that has not ended, where it differs.
fn other_digest(conn: &Connection, number: i64, digest: &[u8; 32]) -> rusqlite::Result<Option<[u8; 32]>> {
    conn.prepare_cached(
        "SELECT s.digest FROM saga_progress p JOIN saga_sagas s ON s.id = p.id \
         WHERE p.ended_at IS NULL AND s.definition = ?1 AND s.digest <> ?2 LIMIT 1",
    )?
    .query_row((number, digest), |row| row.get(0))
    .optional()
}
