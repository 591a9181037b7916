//! The migrations of the runtime's schema.

/// The class of the advisory locks of migrations: "saga" in ASCII.
pub(crate) const LOCK_CLASS: i32 = 0x7361_6761;

/// The level at which each statement sees what others have committed.
pub(crate) const READ_COMMITTED: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// One step from a schema to the next. Where others have applied a part of it already, `sql` may be run again.
pub(crate) struct Migration {
    pub(crate) number: i32,
    pub(crate) name: &'static str,
    /// What is changed in one transaction. Of a migration with indexes it may be run again.
    pub(crate) sql: &'static str,
    /// What is built after that. A process of the version before may work meanwhile.
    pub(crate) indexes: &'static [Index],
}

/// An index over a table that may be large.
pub(crate) struct Index {
    pub(crate) name: &'static str,
    /// The table, the columns and the condition.
    pub(crate) on: &'static str,
}

impl Index {
    /// The statement that makes it.
    pub(crate) fn create(&self, concurrently: &str) -> String {
        format!("CREATE INDEX {concurrently} {} ON {{schema}}.{}", self.name, self.on)
    }
}

const fn whole(number: i32, name: &'static str, sql: &'static str) -> Migration {
    Migration { number, name, sql, indexes: &[] }
}

/// In the order of their numbers. A released migration never changes.
pub(crate) const MIGRATIONS: [Migration; 21] = [
    whole(1, "tables", include_str!("../../migrations/0001_tables.sql")),
    whole(2, "steps", include_str!("../../migrations/0002_steps.sql")),
    whole(3, "shapes", include_str!("../../migrations/0003_shapes.sql")),
    whole(4, "reports", include_str!("../../migrations/0004_reports.sql")),
    whole(5, "begun", include_str!("../../migrations/0005_begun.sql")),
    whole(6, "shares", include_str!("../../migrations/0006_shares.sql")),
    whole(7, "tenants", include_str!("../../migrations/0007_tenants.sql")),
    whole(8, "idempotency_keys", include_str!("../../migrations/0008_idempotency_keys.sql")),
    Migration {
        number: 9,
        name: "retention",
        sql: include_str!("../../migrations/0009_retention.sql"),
        indexes: &[
            Index { name: "progress_expiring", on: "progress (expires_at, id) WHERE expires_at IS NOT NULL" },
            Index { name: "published_dated", on: "published (published_at)" },
            Index {
                name: "dead_letters_saga",
                on: "dead_letters (tenant, {schema}.saga_key_of(headers)) WHERE state = 'open'",
            },
            Index { name: "dead_letters_decided", on: "dead_letters (decided_at) WHERE decided_at IS NOT NULL" },
        ],
    },
    whole(10, "semantic_locks", include_str!("../../migrations/0010_semantic_locks.sql")),
    whole(11, "lock_plans", include_str!("../../migrations/0011_lock_plans.sql")),
    whole(12, "locks_in_transactions", include_str!("../../migrations/0012_locks_in_transactions.sql")),
    whole(13, "abandoned_locks", include_str!("../../migrations/0013_abandoned_locks.sql")),
    whole(14, "locks_with_starts", include_str!("../../migrations/0014_locks_with_starts.sql")),
    whole(15, "request_guard", include_str!("../../migrations/0015_request_guard.sql")),
    whole(16, "exempt_sagas", include_str!("../../migrations/0016_exempt_sagas.sql")),
    whole(17, "unclosed_steps", include_str!("../../migrations/0017_unclosed_steps.sql")),
    Migration {
        number: 18,
        name: "lock_lookups",
        sql: include_str!("../../migrations/0018_lock_lookups.sql"),
        indexes: &[Index {
            name: "locked_entities_granted",
            on: "locked_entities (tenant, kind, id) WHERE token IS NOT NULL",
        }],
    },
    whole(19, "claimed_sagas", include_str!("../../migrations/0019_claimed_sagas.sql")),
    Migration {
        number: 20,
        name: "lookups",
        sql: include_str!("../../migrations/0020_lookups.sql"),
        indexes: &[
            // A row that is inserted for its owner and deleted by it is in no index by saga.
            Index { name: "work_waiting", on: "work (saga) WHERE owner IS NULL" },
            Index { name: "history_operator", on: "history (id) WHERE kind = 'operator'" },
        ],
    },
    whole(21, "waits_for_transactions", include_str!("../../migrations/0021_waits_for_transactions.sql")),
];

pub(crate) const LATEST: i32 = MIGRATIONS[MIGRATIONS.len() - 1].number;

/// The tables of a schema besides `migrations`, each with the number of the migration that makes it.
pub(crate) const TABLES: [(i32, &str); 18] = [
    (1, "definitions"),
    (1, "sagas"),
    (1, "progress"),
    (1, "work"),
    (1, "records"),
    (1, "history"),
    (1, "outbox"),
    (1, "published"),
    (1, "lanes"),
    (1, "parked"),
    (1, "received"),
    (1, "dead_letters"),
    (1, "members"),
    (1, "guards"),
    (8, "idempotency_keys"),
    (9, "maintenance"),
    (10, "lock_requests"),
    (10, "locked_entities"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_from_one() {
        let numbers: Vec<i32> = MIGRATIONS.iter().map(|migration| migration.number).collect();
        assert_eq!(numbers, (1..=LATEST).collect::<Vec<_>>());
    }

    #[test]
    fn every_table_that_is_looked_for_is_created() {
        for (number, table) in TABLES {
            let migration = MIGRATIONS.iter().find(|migration| migration.number == number).unwrap();
            let makes = |create: &str| migration.sql.contains(&format!("{create} {{schema}}.{table} ("));
            assert!(makes("TABLE") || makes("TABLE IF NOT EXISTS"), "{table}");
        }
    }

    /// What was committed before the process that was building the indexes ended is there when the next one begins.
    #[test]
    fn a_migration_with_indexes_may_be_begun_again() {
        for migration in MIGRATIONS.iter().filter(|migration| !migration.indexes.is_empty()) {
            for once in ["CREATE TABLE {", "CREATE FUNCTION", "CREATE INDEX", "ADD COLUMN {", "ADD CONSTRAINT", "DROP "]
            {
                assert!(!migration.sql.contains(once), "{}: {once}", migration.name);
            }
        }
    }
}
