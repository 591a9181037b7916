//! Moving a saga from one version of its definition to another.

use super::saga_control::SagaControl;
use crate::engine::admin::admin_context::{AdminContext, refused};
use crate::engine::admin::audit::reason_problem;
use crate::engine::commit::{CONFLICTS_MAX, ends, retry_on_conflict};
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::decide::{MigrationCheck, prepare_move};
use crate::key::Key;
use crate::saga::Migration;
use crate::store::{Miss, Store};

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
    /// let migration = Migration::between(&v1, &v2).build()?;
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

/// No process would continue a saga whose new version is not registered.
pub(in crate::engine::admin) fn check_target<S: Store>(
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

pub(in crate::engine::admin) async fn move_saga<S: Store>(
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
