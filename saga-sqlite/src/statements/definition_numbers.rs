//! The numbers that stand for definitions in the tables.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _};
use saga_core::store::DefinitionId;

/// The numbers of the definitions that this process has seen. A number that a rolled back transaction gave is
/// forgotten.
#[derive(Debug, Default)]
pub(crate) struct DefinitionNumbers {
    committed: HashMap<DefinitionId, i64>,
    pending: HashMap<DefinitionId, i64>,
}

impl DefinitionNumbers {
    /// The number of a definition. A definition without a number is given one.
    pub(crate) fn number(&mut self, conn: &Connection, definition: &DefinitionId) -> rusqlite::Result<i64> {
        let cached = self.committed.get(definition).or_else(|| self.pending.get(definition));
        if let Some(number) = cached {
            return Ok(*number);
        }
        let number = number_or_new(conn, definition)?;
        self.pending.insert(definition.clone(), number);
        Ok(number)
    }

    /// The number of a definition, if a row ever referred to it.
    pub(crate) fn known(&mut self, conn: &Connection, definition: &DefinitionId) -> rusqlite::Result<Option<i64>> {
        let cached = self.committed.get(definition).or_else(|| self.pending.get(definition));
        if let Some(number) = cached {
            return Ok(Some(*number));
        }
        let number = find(conn, definition)?;
        if let Some(number) = number {
            self.pending.insert(definition.clone(), number);
        }
        Ok(number)
    }

    pub(crate) fn on_commit(&mut self) {
        self.committed.extend(self.pending.drain());
    }

    pub(crate) fn on_rollback(&mut self) {
        self.pending.clear();
    }
}

/// The number of a definition, in the transaction that is open on the connection. A definition without a number is
/// given one.
pub(crate) fn number_or_new(conn: &Connection, definition: &DefinitionId) -> rusqlite::Result<i64> {
    if let Some(number) = find(conn, definition)? {
        return Ok(number);
    }
    conn.prepare_cached("INSERT INTO saga_definitions (name, version) VALUES (?1, ?2)")?
        .execute((&*definition.name, definition.version))?;
    Ok(conn.last_insert_rowid())
}

fn find(conn: &Connection, definition: &DefinitionId) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT id FROM saga_definitions WHERE name = ?1 AND version = ?2")?
        .query_row((&*definition.name, definition.version), |row| row.get(0))
        .optional()
}
