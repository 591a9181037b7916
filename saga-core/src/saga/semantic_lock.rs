//! Steps of the engine's own that take a semantic lock.

use std::time::Duration;

use super::definition::idle::LockWait;
use super::parts::Parts;
use super::{Idle, LONGEST, Mapping, SagaFn, StepBuilder, StepDefinition};
use crate::machine::{StepShape, UndoShape};
use crate::step::{Locked, NeededOutput, Payload, SemanticLock, Step};
use crate::store::{Entity, Store};

/// A closure that names the entities of a semantic lock: a [`SagaFn`] that makes an [`Entity`], an array or a `Vec` of
/// them.
///
/// `M` only distinguishes closures with different parameters and results, and is inferred.
#[diagnostic::on_unimplemented(
    message = "this closure does not name entities of the saga's input `{I}`",
    label = "not a closure from `&{I}` to an `Entity`, or to several",
    note = "write the types of its parameters: `|input: &{I}| Entity::new(\"account\", &input.account)`"
)]
pub trait EntitiesFn<I, M>: Send + Sync + 'static {
    #[doc(hidden)]
    fn reads(&self) -> Vec<NeededOutput>;

    #[doc(hidden)]
    fn into_entities(self) -> EntitiesMapping;
}

/// The closure with its types erased.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "it is a closure")]
pub struct EntitiesMapping(pub(super) Mapping);

impl<F, I, V, P> EntitiesFn<I, (V, P)> for F
where
    F: SagaFn<I, V, P>,
    I: Payload,
    V: Into<Vec<Entity>> + 'static,
{
    fn reads(&self) -> Vec<NeededOutput> {
        self.needed()
    }

    fn into_entities(self) -> EntitiesMapping {
        EntitiesMapping(Mapping::to_entities(self))
    }
}

impl<S: Store> Parts<S> {
    fn add_lock<L: SemanticLock>(&mut self, within: Duration, entities: EntitiesMapping, earlier: &[NeededOutput]) {
        let mapped = earlier.iter().map(|needed| needed.step).collect();
        let check =
            |bytes: &[u8]| <Locked<L> as Step>::OUTPUT.decode(bytes).map(drop).map_err(|error| error.to_string());
        let idle = StepDefinition::of_idle(L::NAME, Idle::Lock(LockWait { within: within.min(LONGEST) }));
        let step = StepDefinition { input: Some(entities.0), mapped, check_output: check, ..idle };
        self.check_idle_name(L::NAME);
        let shape = StepShape { lock: true, ..StepShape::new(L::NAME, step.run.effect(), UndoShape::NotNeeded) };
        self.add_shaped(step, shape, earlier);
    }
}

/// # Semantic locks
///
/// Between its first commit and its last one, a saga leaves data that it may still undo. A semantic lock keeps other sagas
/// away from such data: a saga that names an entity with `.semantic_lock` has it from that step until its last commit,
/// which is its last undo if it compensates. Another saga that names the entity waits in its own `.semantic_lock` step. The
/// commit that ends the first saga gives the entity to the next one.
///
/// A lock names one entity or several, and is granted whole. Waiting sagas get their turns in the order in which they began
/// to wait. Waiting takes no worker, no connection and no attempt, survives restarts, and is shown by the saga's status. The
/// locks of a sub-saga belong to the outermost saga and end with that; sagas of one family never wait for each other.
///
/// If sagas that took one lock wait for each other, the commit that closes the ring finds it: the youngest saga is rejected
/// at its lock, and compensates. So does a saga that waited longer than its
/// [limit](Self::semantic_lock_within). A semantic lock stands before the pivot, since from there a saga only goes forward.
///
/// Only sagas respect semantic locks: what else reads or writes the data looks them up, with
/// [`SagaQuery::semantic_locks`](crate::engine::SagaQuery::semantic_locks) or by the view of the database. A later step
/// reads the fencing tokens of the entities with [`Locked`].
///
/// ```
/// use saga_core::memory::MemoryStore;
/// use saga_core::{Entity, Locked, Outcome, Runtime, Saga, SemanticLock, StepError, saga_step};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Order { id: u32, account: String }
///
/// struct Credit;
///
/// impl SemanticLock for Credit {
///     const NAME: &'static str = "credit";
/// }
///
/// #[saga_step(no_compensation)]
/// async fn check_credit(order: Order, credit: Locked<Credit>) -> Result<(), StepError> {
///     let account = Entity::new("account", &order.account);
///     assert!(credit.token_of(&account).is_some());
///     Ok(())
/// }
///
/// #[saga_step]
/// async fn confirm_order(_order: Order) -> Result<(), StepError> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let create_order = Saga::named("create-order")
///     .input::<Order>()
///     .semantic_lock::<Credit, _>(|order: &Order| {
///         [Entity::new("account", &order.account), Entity::new("order", order.id)]
///     })
///     .step::<check_credit>()
///     .step::<confirm_order>()
///     .build()?;
///
/// let runtime = Runtime::builder(MemoryStore::new()).saga(&create_order).start().await?;
/// let order = Order { id: 10_248, account: "ada".to_owned() };
/// let outcome = runtime.start(&create_order, "order-10248", order).await?.outcome().await?;
/// assert!(matches!(outcome, Outcome::Completed { .. }));
/// # runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
impl<S: Store, I: Payload, P> StepBuilder<S, I, P> {
    /// Adds a step that takes the semantic lock `L` on the entities that a closure names: see [`EntitiesFn`]. The saga waits
    /// as long as it takes; its deadline and a cancel still end the wait. The name of the step is that of the lock.
    #[must_use]
    pub fn semantic_lock<L: SemanticLock, M>(self, entities: impl EntitiesFn<I, M>) -> Self {
        self.semantic_lock_within::<L, M>(LONGEST, entities)
    }

    /// The same with a limit: a saga that has waited so long is rejected at this step, and compensates.
    #[must_use]
    pub fn semantic_lock_within<L: SemanticLock, M>(
        mut self,
        limit: Duration,
        entities: impl EntitiesFn<I, M>,
    ) -> Self {
        let reads = entities.reads();
        self.parts.add_lock::<L>(limit, entities.into_entities(), &reads);
        self
    }

    /// Ends the semantic lock `L` in the commit in which the last added step is done, and not only with the saga. The step
    /// must be the pivot or stand behind it: before that, the saga may still have to undo what the lock protects.
    #[must_use]
    pub fn release<L: SemanticLock>(mut self) -> Self {
        self.parts.add_release(L::NAME);
        self
    }
}
