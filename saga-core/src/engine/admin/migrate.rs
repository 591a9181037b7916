//! Moving sagas from one version of a definition to another.

use std::collections::BTreeSet;
use std::fmt;

use super::admin_context::{AdminContext, refused};
use super::audit::reason_problem;
use super::saga_admin::SagaAdmin;
use super::saga_control::SagaControl;
use super::tenant_store::TenantStore;
use crate::engine::commit::{CONFLICTS_MAX, ends, retry_on_conflict};
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::decide::{MigrationCheck, prepare_move};
use crate::key::Key;
use crate::saga::Migration;
use crate::store::{Miss, SagaFilter, SagaId, Status, Store};

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

impl<S: Store> SagaControl<S> {
    /// Moves the saga to another version of its definition, in one commit, and adds the reason to its history. Steps that are
    /// under way go on as steps of the new version.
    ///
    /// A saga can move when it has not ended, and
    /// - no process is running a step of it; a command that waits, also for another attempt, moves along,
    /// - the steps under way are in the new version by the same names, with their effects in the same place,
    /// - the steps that took effect are there too, in an order that fits, or have nothing to undo,
    /// - every step before those that have begun is done, or the migration lets sagas pass it,
    /// - the arms that it took are in the new version, no step that has begun is in another arm there, and the migration
    ///   names the arm that counts as taken for a choice that the saga is past without having made it,
    /// - the compensations of steps that took effect find the outputs that they take,
    /// - its input, and the inputs and outputs of its steps, can be read as the types of the new version.
    ///
    /// When the saga has that version already, nothing happens: the same call may be repeated.
    ///
    /// # Errors
    /// [`RuntimeError::Refused`] with every reason why the saga cannot move, [`RuntimeError::Busy`] while a step of it runs,
    /// and when there is no such saga or the store fails. Nothing was changed then.
    ///
    /// # Cancel safety
    /// When dropped, the saga was moved whole or not at all; move it again to be sure.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Migration, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation)]
    /// async fn greet(name: String) -> Result<String, StepError> {
    ///     Ok(format!("hello {name}"))
    /// }
    ///
    /// #[saga_step]
    /// async fn say_goodbye(name: String) -> Result<(), StepError> {
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let v1 = Saga::named("visit").input::<String>().step::<greet>().build()?;
    /// let v2 = Saga::named("visit").input::<String>().version(2).step::<greet>().step::<say_goodbye>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&v1).saga(&v2).start().await?;
    /// runtime.start(&v1, "visit-1", "Ada".to_owned()).after(Duration::from_hours(24)).await?;
    ///
    /// let migration = Migration::from(&v1).to(&v2).build()?;
    /// runtime.admin().control("visit-1").migrate(&migration, "visits end with a goodbye").await?;
    ///
    /// let status = runtime.status("visit-1").await?.expect("it was started");
    /// assert_eq!((status.summary.version, status.steps.len()), (2, 2));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate(&self, migration: &Migration<S>, reason: &str) -> Result<(), RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(&self.key)?;
        check_target(&self.ctx, migration, &key, reason)?;
        move_saga(&self.ctx, migration, &key, self.seen, Some(reason)).await
    }
}

impl<S: Store> SagaAdmin<S> {
    /// Moves every saga of the old version that can be moved, of this tenant. Each is moved as
    /// [`SagaControl::migrate`] does.
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

/// No process would continue a saga whose new version is not registered.
fn check_target<S: Store>(
    ctx: &AdminContext<S>,
    migration: &Migration<S>,
    key: &Key,
    reason: &str,
) -> Result<(), RuntimeError> {
    if let Some(problem) = reason_problem(reason, "the move") {
        return Err(refused(key, problem));
    }
    let to = &migration.plan.to;
    match ctx.definitions.get(&to.id) {
        Some(known) if known.digest == to.digest => Ok(()),
        _ => Err(refused(key, format!("{} is not registered here; give it to the runtime with `.saga(&..)`", to.id))),
    }
}

async fn move_saga<S: Store>(
    ctx: &AdminContext<S>,
    migration: &Migration<S>,
    key: &Key,
    seen: Option<u64>,
    reason: Option<&str>,
) -> Result<(), RuntimeError> {
    let moved = retry_on_conflict(CONFLICTS_MAX, || async {
        Ok::<_, RuntimeError>(ends(move_saga_once(ctx, migration, key, seen, reason).await?))
    });
    moved.await?.ok_or_else(|| RuntimeError::Busy { key: key.to_string() })
}

/// Moves a saga as it is; false if another decision about it was committed first.
async fn move_saga_once<S: Store>(
    ctx: &AdminContext<S>,
    migration: &Migration<S>,
    key: &Key,
    seen: Option<u64>,
    reason: Option<&str>,
) -> Result<bool, RuntimeError> {
    let stored = ctx.stored(key, seen).await?;
    let moved = match prepare_move(&migration.plan, &stored, reason.unwrap_or_default()) {
        Ok(MigrationCheck::There) => return Ok(true),
        Ok(MigrationCheck::CanMove(moved)) => moved,
        Err(problem) => return Err(refused(key, problem)),
    };
    if reason.is_none() {
        return Ok(true);
    }
    match ctx.tenant_store.store.migrate(*moved).await? {
        Ok(()) => {
            ctx.tenant_store.forget_waiting(key);
            ctx.tenant_store.wake_workers();
            Ok(true)
        }
        Err(Miss::Work(_)) => Err(RuntimeError::Busy { key: key.to_string() }),
        Err(Miss::Saga(_)) => Ok(false),
        Err(miss) => Err(refused(key, format!("the move did not apply: {miss:?}"))),
    }
}
