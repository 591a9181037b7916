use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use super::migration_said::{Conversion, Said, SaidOf};
use super::{Definition, Saga};
use crate::step::{Payload, Step, codec};
use crate::store::Store;
use crate::unwind::caught;

/// Moves sagas of one version of a definition to another version. Cheap to clone.
///
/// A saga stays on the version with which it was started, unless it is moved:
/// [`SagaControl::migrate`](crate::engine::SagaControl::migrate) moves one saga, and
/// [`SagaAdmin::migrate_all`](crate::engine::SagaAdmin::migrate_all) moves all that can be moved. Steps with the same name in
/// both versions are the same step. For every other old step, the migration says what replaces it. For every new step, it
/// says whether a saga that is past its place continues without it.
///
/// Whether a saga can be moved is checked when it is moved: see
/// [`SagaControl::migrate`](crate::engine::SagaControl::migrate) for the rules.
///
/// Choices and arms with the same names are the same. A saga that made a choice keeps the arm that it took, so this arm must
/// exist in the new version; arms can be added and reordered. A choice that a saga has not reached is made by the new
/// version. For a new choice that a saga is already past, [`assume_arm`](MigrationBuilder::assume_arm) names the arm that
/// counts as taken.
///
/// ```
/// # use saga_core::{Migration, Saga, StepError, memory::{MemoryConn, MemoryStore}, saga_compensation, saga_step};
/// #[saga_step(compensate = put_back)]
/// async fn take_stock(conn: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
///     Ok(order)
/// }
///
/// #[saga_compensation]
/// async fn put_back(conn: &mut MemoryConn, order: u32) -> Result<(), StepError> {
///     Ok(())
/// }
///
/// # #[saga_compensation]
/// # async fn release(conn: &mut MemoryConn, order: u32) -> Result<(), StepError> { Ok(()) }
/// /// The same step with a better name and another output.
/// #[saga_step(compensate = release)]
/// async fn reserve_stock(conn: &mut MemoryConn, order: u32) -> Result<(u32, String), StepError> {
///     Ok((order, "shelf 4".to_owned()))
/// }
///
/// #[saga_step(no_compensation)]
/// async fn check_address(order: u32) -> Result<(), StepError> {
///     Ok(())
/// }
///
/// #[saga_step]
/// async fn ship(conn: &mut MemoryConn, order: u32) -> Result<(), StepError> {
///     Ok(())
/// }
///
/// let v1: Saga<MemoryStore, u32> = Saga::named("ship-order").input().step::<take_stock>().step::<ship>().build()?;
/// let v2: Saga<MemoryStore, u32> = Saga::named("ship-order")
///     .input()
///     .version(2)
///     .step::<reserve_stock>()
///     .step::<check_address>()
///     .step::<ship>()
///     .build()?;
///
/// let migration = Migration::between(&v1, &v2)
///     .step_with::<take_stock, reserve_stock>(|order| (order, "unknown".to_owned()))
///     .assume_done::<check_address>()
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Migration<S: Store> {
    pub(crate) plan: Arc<Plan<S>>,
}

/// A migration with its types taken off.
pub(crate) struct Plan<S: Store> {
    pub(crate) from: Arc<Definition<S>>,
    pub(crate) to: Arc<Definition<S>>,
    /// The place of each old step in the new version.
    pub(crate) places: Vec<Option<usize>>,
    /// New steps that a saga may be past.
    pub(crate) passed: Vec<usize>,
    /// Of each old step that is a choice: the place of each of its arms in the new version.
    pub(crate) arms: Vec<Vec<Option<usize>>>,
    /// Choices that a saga may be past, each with the arm that counts as taken.
    pub(crate) chosen: Vec<(usize, Option<usize>)>,
    /// What becomes of the outputs of old steps.
    pub(crate) conversions: Vec<(usize, Conversion)>,
    /// Whether bytes are an input of the new version.
    pub(crate) check_input: fn(&[u8]) -> Result<(), String>,
}

impl<S: Store> Plan<S> {
    /// A plan without any step of the old version.
    fn new(from: Arc<Definition<S>>, to: Arc<Definition<S>>, check_input: fn(&[u8]) -> Result<(), String>) -> Self {
        Self {
            from,
            to,
            places: Vec::new(),
            passed: Vec::new(),
            arms: Vec::new(),
            chosen: Vec::new(),
            conversions: Vec::new(),
            check_input,
        }
    }

    /// The same plan between the same versions with other functions, maybe on another store.
    pub(super) fn between<T: Store>(&self, from: Arc<Definition<T>>, to: Arc<Definition<T>>) -> Plan<T> {
        Plan {
            places: self.places.clone(),
            passed: self.passed.clone(),
            arms: self.arms.clone(),
            chosen: self.chosen.clone(),
            conversions: self.conversions.clone(),
            ..Plan::new(from, to, self.check_input)
        }
    }
}

/// A migration to which rules for steps and choices are added.
pub struct MigrationBuilder<S: Store> {
    from: Arc<Definition<S>>,
    to: Arc<Definition<S>>,
    said: Vec<Said>,
    check_input: fn(&[u8]) -> Result<(), String>,
}

/// An invalid migration: all its problems, each with its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("sagas of {from} cannot be moved to {to}: {}", problems.join("; "))]
pub struct MigrationError {
    from: String,
    to: String,
    /// The problems, in sentences.
    pub problems: Vec<String>,
}

/// A step that returns what `Old` returned.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not return what `{Old}` returned",
    label = "returns another type",
    note = "what the old step returned is stored, and is read as what the new one returns: say what becomes of it with `.step_with::<old, new>(|output| ..)`"
)]
pub trait SameOutput<Old: Step> {}

#[diagnostic::do_not_recommend]
impl<Old: Step, New: Step<Output = Old::Output>> SameOutput<Old> for New {}

impl<S: Store> Migration<S> {
    /// A migration from the old version to the new one. The stored input of a saga is read as the input of the new version.
    #[must_use]
    pub fn between<Old, New: Payload, Q, R>(from: &Saga<S, Old, Q>, to: &Saga<S, New, R>) -> MigrationBuilder<S> {
        MigrationBuilder {
            from: Arc::clone(from.definition()),
            to: Arc::clone(to.definition()),
            said: Vec::new(),
            check_input: |bytes| codec::<New>().decode(bytes).map(drop).map_err(|error| error.to_string()),
        }
    }
}

impl<S: Store> MigrationBuilder<S> {
    /// Replaces an old step by a new one with another name and the same output type.
    #[must_use]
    pub fn step<Old: Step, New: Step + SameOutput<Old>>(mut self) -> Self {
        self.said.push(Said::Became { old: Old::NAME, new: New::NAME, conversion: None });
        self
    }

    /// Replaces an old step by a new one with another output type. The closure converts the stored output. Both can have the
    /// same name.
    #[must_use]
    pub fn step_with<Old: Step, New: Step>(
        mut self,
        output: impl Fn(Old::Output) -> New::Output + Send + Sync + 'static,
    ) -> Self {
        let conversion: Conversion = Arc::new(move |bytes| {
            let converted = caught(|| {
                let old = Old::OUTPUT.decode(bytes).map_err(|error| error.to_string())?;
                New::OUTPUT.encode(&output(old)).map_err(|error| error.to_string())
            });
            converted.map_err(|_| format!("what makes it a {} panicked", type_name::<New::Output>()))?
        });
        self.said.push(Said::Became { old: Old::NAME, new: New::NAME, conversion: Some(conversion) });
        self
    }

    /// Removes a step. A saga in which the step took effect, and which may still have to undo it, is not moved.
    #[must_use]
    pub fn remove<Old: Step>(mut self) -> Self {
        self.said.push(Said::LeftOut { old: Old::NAME });
        self
    }

    /// Lets a saga that is past the place of this new step continue without it: the step counts as skipped. This also applies
    /// to a step that the old version has in an arm of a choice, for sagas that took another arm.
    #[must_use]
    pub fn assume_done<New: Step>(mut self) -> Self {
        self.said.push(Said::Passed { new: New::NAME });
        self
    }

    /// Removes a sleep. A saga that is in this sleep is not moved.
    #[must_use]
    pub fn remove_sleep(mut self, sleep: &'static str) -> Self {
        self.said.push(Said::LeftOutSleep { sleep });
        self
    }

    /// Lets a saga that is past the place of this new sleep continue without it: the sleep counts as skipped.
    #[must_use]
    pub fn assume_slept(mut self, sleep: &'static str) -> Self {
        self.said.push(Said::PassedSleep { sleep });
        self
    }

    /// Replaces an old choice by a new one with another name. Arms with the same name are the same arm.
    #[must_use]
    pub fn choice(mut self, old: &'static str, new: &'static str) -> Self {
        self.said.push(Said::BecameChoice { old, new });
        self
    }

    /// Replaces an arm of an old choice by an arm with another name in the new choice.
    #[must_use]
    pub fn rename_arm(mut self, choice: &'static str, old: &'static str, new: &'static str) -> Self {
        self.said.push(Said::BecameArm { choice, old, new });
        self
    }

    /// Removes a choice. The steps of its arms must be elsewhere in the new version, or be removed as well. For a saga that
    /// did not take their arm, they count as new steps.
    #[must_use]
    pub fn remove_choice(mut self, choice: &'static str) -> Self {
        self.said.push(Said::LeftOutChoice { choice });
        self
    }

    /// Names the arm that counts as taken for a saga that is past this new choice and never made it. Steps of the other arms
    /// are not taken. In this arm, steps that have begun continue, and a step before them that has not begun needs an
    /// [`assume_done`](Self::assume_done). The move records the choice as skipped. A saga that has not reached the choice
    /// makes it itself, and a saga that has made it keeps its arm.
    ///
    /// ```
    /// # use saga_core::{Migration, Saga, StepError, memory::MemoryStore, saga::Branch, saga_step};
    /// # #[saga_step(no_compensation)]
    /// # async fn pack_parcel(order: u32) -> Result<(), StepError> { Ok(()) }
    /// # #[saga_step(no_compensation)]
    /// # async fn write_letter(order: u32) -> Result<(), StepError> { Ok(()) }
    /// # #[saga_step]
    /// # async fn call_courier(order: u32) -> Result<(), StepError> { Ok(()) }
    /// // In version 1, every order was packed.
    /// let v1: Saga<MemoryStore, u32> = Saga::named("ship").input().step::<pack_parcel>().step::<call_courier>().build()?;
    /// let v2: Saga<MemoryStore, u32> = Saga::named("ship")
    ///     .input()
    ///     .version(2)
    ///     .choose("shipping", |choice| {
    ///         choice.when("parcel", |order: &u32| *order >= 100, Branch::step::<pack_parcel>).otherwise(Branch::step::<write_letter>)
    ///     })
    ///     .step::<call_courier>()
    ///     .build()?;
    ///
    /// // Every packed order counts as a parcel.
    /// let migration = Migration::between(&v1, &v2).assume_arm("shipping", "parcel").build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn assume_arm(mut self, choice: &'static str, arm: &'static str) -> Self {
        self.said.push(Said::PassedChoice { choice, arm: Some(arm) });
        self
    }

    /// The same, but no arm counts as taken.
    #[must_use]
    pub fn assume_no_arm(mut self, choice: &'static str) -> Self {
        self.said.push(Said::PassedChoice { choice, arm: None });
        self
    }

    /// Checks the migration.
    ///
    /// # Errors
    /// All problems of the migration, each with its remedy.
    pub fn build(self) -> Result<Migration<S>, MigrationError> {
        let Self { from, to, said, check_input } = self;
        let mut said_of = SaidOf { from: &from, to: &to, problems: Vec::new() };
        said_of.check_versions();
        let places = said_of.places(&said);
        let passed = said_of.passed(&said, &places);
        let arms = said_of.arms(&said, &places);
        let chosen = said_of.chosen(&said);
        let conversions = said_of.conversions(&said);
        let problems = said_of.problems;
        if !problems.is_empty() {
            return Err(MigrationError { from: from.id.to_string(), to: to.id.to_string(), problems });
        }
        Ok(Migration {
            plan: Arc::new(Plan { places, passed, arms, chosen, conversions, ..Plan::new(from, to, check_input) }),
        })
    }
}

impl<S: Store> Clone for Migration<S> {
    fn clone(&self) -> Self {
        Self { plan: Arc::clone(&self.plan) }
    }
}

impl<S: Store> fmt::Debug for Migration<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migration")
            .field("from", &self.plan.from.id)
            .field("to", &self.plan.to.id)
            .field("places", &self.plan.places)
            .field("passed", &self.plan.passed)
            .finish_non_exhaustive()
    }
}

impl<S: Store> fmt::Debug for MigrationBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MigrationBuilder").field("from", &self.from.id).field("to", &self.to.id).finish_non_exhaustive()
    }
}
