//! Moving all sagas of one version of a definition to another.

use std::collections::BTreeSet;
use std::fmt;

use super::admin_context::AdminContext;
use super::control::migrate::{check_target, move_saga};
use super::saga_admin::SagaAdmin;
use super::tenant_store::TenantStore;
use crate::engine::context::{RuntimeError, outside_step};
use crate::key::Key;
use crate::saga::Migration;
use crate::store::{SagaFilter, SagaId, Status, Store};

/// How many times the sagas are listed at most, as long as a list has new ones.
const PASSES_MAX: usize = 16;

/// How many sagas are listed at a time.
const PAGE: usize = 500;

/// What became of the sagas of one version, as [`SagaAdmin::migrate_all`] returns it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationReport {
    /// The sagas that moved, or that can move.
    pub moved: Vec<Key>,
    /// The sagas that cannot move yet, since a process runs one of their steps: repeat the move when the step has ended.
    pub busy: Vec<Key>,
    /// The sagas that cannot move, each with the reason.
    pub refused: Vec<(Key, String)>,
}

impl fmt::Display for MigrationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { moved, busy, refused } = self;
        write!(f, "{} moved, {} busy, {} refused", moved.len(), busy.len(), refused.len())?;
        for (key, problem) in refused {
            write!(f, "\n{key}: {problem}")?;
        }
        Ok(())
    }
}

impl<S: Store> SagaAdmin<S> {
    /// Moves every saga of the old version that can be moved, of this tenant. Each is moved as
    /// [`SagaControl::migrate`](crate::engine::SagaControl::migrate) does.
    ///
    /// # Errors
    /// When the new version is not registered here, or the store fails: sagas that were moved until then stay moved, and the
    /// same call may be repeated.
    ///
    /// # Cancel safety
    /// When dropped, some sagas were moved, each whole; call it again for the others.
    pub async fn migrate_all(&self, migration: &Migration<S>, reason: &str) -> Result<MigrationReport, RuntimeError> {
        migrate_each(&self.ctx, migration, Some(reason)).await
    }

    /// Says which sagas of the old version could be moved, and why the others cannot. Nothing is changed.
    ///
    /// # Errors
    /// Those of [`migrate_all`](SagaAdmin::migrate_all).
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn check_migration(&self, migration: &Migration<S>) -> Result<MigrationReport, RuntimeError> {
        migrate_each(&self.ctx, migration, None).await
    }
}

/// Moves the sagas of the old version that can move. Without a reason nothing is written.
async fn migrate_each<S: Store>(
    ctx: &AdminContext<S>,
    migration: &Migration<S>,
    reason: Option<&str>,
) -> Result<MigrationReport, RuntimeError> {
    outside_step()?;
    check_target(ctx, migration, &Key::none(), reason.unwrap_or("a look"))?;
    let mut report = MigrationReport::default();
    let mut seen = BTreeSet::new();
    // A saga that is resumed or gets stuck meanwhile may have the status of a list that was read before.
    for _ in 0..PASSES_MAX {
        let before = seen.len();
        for status in [Status::Running, Status::Compensating, Status::Stuck, Status::Paused] {
            migrate_status(ctx, migration, reason, status, &mut seen, &mut report).await?;
        }
        if seen.len() == before {
            break;
        }
    }
    Ok(report)
}

/// Moves the sagas of this status that were not seen before.
async fn migrate_status<S: Store>(
    ctx: &AdminContext<S>,
    migration: &Migration<S>,
    reason: Option<&str>,
    status: Status,
    seen: &mut BTreeSet<SagaId>,
    report: &mut MigrationReport,
) -> Result<(), RuntimeError> {
    let id = &migration.plan.from.id;
    let TenantStore { store, tenant, .. } = &ctx.tenant_store;
    let (status, definition) = (Some(status), Some(id.name.to_string()));
    let mut filter = SagaFilter { tenant: tenant.clone(), status, definition, limit: PAGE, ..SagaFilter::default() };
    loop {
        let rows = store.list(&filter).await?;
        let Some(last) = rows.last().map(|row| row.id) else { return Ok(()) };
        for row in rows {
            if row.definition != *id || !seen.insert(row.id) {
                continue;
            }
            match move_saga(ctx, migration, &row.key, None, reason).await {
                Ok(()) => report.moved.push(row.key),
                Err(RuntimeError::Busy { .. }) => report.busy.push(row.key),
                Err(RuntimeError::Refused { problem, .. }) => report.refused.push((row.key, problem)),
                Err(error) => return Err(error),
            }
        }
        filter.after = Some(last);
    }
}
