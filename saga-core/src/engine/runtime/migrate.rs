//! Moving sagas from one version of a definition to another.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use super::runtime::Runtime;
use crate::engine::admin::reason_problem;
use crate::engine::commit::{CONFLICTS_MAX, ends, retry_on_conflict};
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::decide::{MigrationCheck, prepare_move};
use crate::key::Key;
use crate::saga::Migration;
use crate::store::{Miss, SagaFilter, SagaId, Status, Store};

/// How often the sagas are gone through, as long as there are some that were not seen before.
const PASSES_MAX: usize = 16;

/// How many sagas are listed at a time.
const PAGE: usize = 500;

/// What became of the sagas of one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationReport {
    /// Those that moved, or could.
    pub moved: Vec<Key>,
    /// Those of which a step is under way in some process right now: they can be moved when it has ended.
    pub busy: Vec<Key>,
    /// Those that cannot move as they stand, each with the reason.
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

impl<S: Store> Runtime<S> {
    /// Moves a saga to another version of its definition, in one commit, and leaves a line with the reason in its history.
    /// What is under way of it goes on as the new version.
    ///
    /// A saga can move when it has not ended, and
    /// - no process is running a step of it; a command that waits, also for another attempt, goes along,
    /// - what is under way is in the new version by the same name, with its effect in the same place,
    /// - what took effect is there too, in an order that fits, or there is nothing to undo of it,
    /// - every step that comes before what has begun is done, or the migration lets sagas pass it,
    /// - the arms that it took are in the new version, what has begun stands in no other arm there, and of a choice that it is
    ///   past without having made it the migration says which arm counts as taken,
    /// - the compensations of what stands find what they take of other steps,
    /// - its input, and what its steps were given and returned, can be read as the new version's types.
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
    /// runtime.migrate(&migration, "visit-1", "visits end with a goodbye").await?;
    ///
    /// let status = runtime.saga("visit-1").await?.expect("it was started");
    /// assert_eq!((status.summary.version, status.steps.len()), (2, 2));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate(
        &self,
        migration: &Migration<S>,
        key: impl AsRef<str>,
        reason: &str,
    ) -> Result<(), RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(key.as_ref())?;
        self.check_target(migration, &key, reason)?;
        self.move_saga(migration, &key, Some(reason)).await
    }

    /// Moves every saga of the old version that can be moved, of this tenant. Each is moved as
    /// [`migrate`](Runtime::migrate) does.
    ///
    /// # Errors
    /// When the new version is not registered here, or the store fails: what was moved until then stays so, and the same
    /// call may be repeated.
    ///
    /// # Cancel safety
    /// When dropped, some sagas were moved, each whole; call it again for the others.
    pub async fn migrate_all(&self, migration: &Migration<S>, reason: &str) -> Result<MigrationReport, RuntimeError> {
        self.go_through(migration, Some(reason)).await
    }

    /// Says which sagas of the old version could be moved, and why the others cannot. Nothing is changed.
    ///
    /// # Errors
    /// Those of [`migrate_all`](Runtime::migrate_all).
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn check_migration(&self, migration: &Migration<S>) -> Result<MigrationReport, RuntimeError> {
        self.go_through(migration, None).await
    }

    /// Without a reason nothing is written.
    async fn go_through(
        &self,
        migration: &Migration<S>,
        reason: Option<&str>,
    ) -> Result<MigrationReport, RuntimeError> {
        outside_step()?;
        self.check_target(migration, &Key::none(), reason.unwrap_or("a look"))?;
        let mut report = MigrationReport::default();
        let mut seen = BTreeSet::new();
        // A saga that is resumed or stuck meanwhile may have the status of a list that was read before.
        for _ in 0..PASSES_MAX {
            let before = seen.len();
            for status in [Status::Running, Status::Compensating, Status::Stuck, Status::Paused] {
                self.go_through_status(migration, reason, status, &mut seen, &mut report).await?;
            }
            if seen.len() == before {
                break;
            }
        }
        Ok(report)
    }

    /// Looks at the sagas of that status that were not seen before.
    async fn go_through_status(
        &self,
        migration: &Migration<S>,
        reason: Option<&str>,
        status: Status,
        seen: &mut BTreeSet<SagaId>,
        report: &mut MigrationReport,
    ) -> Result<(), RuntimeError> {
        let id = &migration.plan.from.id;
        let mut filter = self.filter_of(status, &id.name, None);
        loop {
            let rows = self.engine.ctx.store.list(&filter).await?;
            let Some(last) = rows.last().map(|row| row.id) else { return Ok(()) };
            for row in rows {
                if row.definition != *id || !seen.insert(row.id) {
                    continue;
                }
                match self.move_saga(migration, &row.key, reason).await {
                    Ok(()) => report.moved.push(row.key),
                    Err(RuntimeError::Busy { .. }) => report.busy.push(row.key),
                    Err(RuntimeError::Refused { problem, .. }) => report.refused.push((row.key, problem)),
                    Err(error) => return Err(error),
                }
            }
            filter = self.filter_of(status, &id.name, Some(last));
        }
    }

    fn filter_of(&self, status: Status, name: &str, after: Option<SagaId>) -> SagaFilter {
        let definition = Some(name.to_owned());
        SagaFilter { tenant: self.tenant.clone(), status: Some(status), definition, after, limit: PAGE }
    }

    /// No process would continue a saga whose new version is not registered.
    fn check_target(&self, migration: &Migration<S>, key: &Key, reason: &str) -> Result<(), RuntimeError> {
        let refused = |problem| Err(RuntimeError::Refused { key: key.to_string(), problem });
        if let Some(problem) = reason_problem(reason, "the move") {
            return refused(problem);
        }
        let to = &migration.plan.to;
        match self.engine.ctx.definitions.get(&to.id) {
            Some(known) if known.digest == to.digest => Ok(()),
            _ => refused(format!("{} is not registered here; give it to the runtime with `.saga(&..)`", to.id)),
        }
    }

    async fn move_saga(&self, migration: &Migration<S>, key: &Key, reason: Option<&str>) -> Result<(), RuntimeError> {
        let busy = || RuntimeError::Busy { key: key.to_string() };
        let moved = retry_on_conflict(CONFLICTS_MAX, || async {
            Ok::<_, RuntimeError>(ends(self.move_saga_once(migration, key, reason).await?))
        });
        moved.await?.ok_or_else(busy)
    }

    /// Moves a saga as it is; false where another decision about it was committed first.
    async fn move_saga_once(
        &self,
        migration: &Migration<S>,
        key: &Key,
        reason: Option<&str>,
    ) -> Result<bool, RuntimeError> {
        let (engine, tenant) = (&self.engine, &self.tenant);
        let stored = engine.ctx.store.saga_with_steps(tenant, key).await?;
        let stored = stored.ok_or_else(|| RuntimeError::NoSaga(key.to_string()))?;
        let moved = match prepare_move(&migration.plan, &stored, reason.unwrap_or_default()) {
            Ok(MigrationCheck::There) => return Ok(true),
            Ok(MigrationCheck::CanMove(moved)) => moved,
            Err(problem) => return Err(RuntimeError::Refused { key: key.to_string(), problem }),
        };
        if reason.is_none() {
            return Ok(true);
        }
        match engine.ctx.store.migrate(*moved).await? {
            Ok(()) => {
                engine.committer.waiting_cache.take(tenant, key);
                engine.committer.scheduler.announce_unclaimed(Duration::ZERO);
                Ok(true)
            }
            Err(Miss::Work(_)) => Err(RuntimeError::Busy { key: key.to_string() }),
            Err(Miss::Saga(_)) => Ok(false),
            Err(miss) => {
                let problem = format!("the move did not apply: {miss:?}");
                Err(RuntimeError::Refused { key: key.to_string(), problem })
            }
        }
    }
}
