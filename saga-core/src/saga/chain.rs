use std::fmt;
use std::marker::PhantomData;

use super::parts::Parts;
use super::{Mapping, Saga, SagaFn, SubSaga};
use crate::step::{Handler, InputOf, Payload};
use crate::store::Store;

/// A sequence to which steps are added: of a saga ([`SagaBuilder`](super::SagaBuilder)), of a branch of a group, or of an arm
/// of a choice ([`Branch`]).
pub struct StepBuilder<S: Store, I, P> {
    pub(super) parts: Parts<S>,
    /// What it is that gets the steps.
    pub(super) place: P,
    input: PhantomData<fn(I)>,
}

/// The sequence of a branch, which runs concurrently with the other branches of its group, or of an arm, which runs instead
/// of the other arms of its choice.
pub type Branch<S, I> = StepBuilder<S, I, Nested>;

/// Stands for a part of a saga, while it gets its steps.
#[derive(Debug)]
pub struct Nested;

impl<S: Store, I, P> StepBuilder<S, I, P> {
    pub(super) fn new(parts: Parts<S>, place: P) -> Self {
        Self { parts, place, input: PhantomData }
    }
}

impl<S: Store, I: Payload, P> StepBuilder<S, I, P> {
    /// Adds a step whose input is the input of the saga.
    #[must_use]
    pub fn step<T: Handler<S, Input: InputOf<I>>>(mut self) -> Self {
        self.parts.add::<T>(None, &[]);
        self
    }

    /// Adds a step whose input a closure makes from the saga's input and the outputs of earlier steps: see [`SagaFn`]. The
    /// closure is called once, and its result is stored.
    ///
    /// A step in a branch of a group can read steps of its branch and steps before the group.
    #[must_use]
    pub fn step_from<T: Handler<S>, M>(mut self, input: impl SagaFn<I, T::Input, M>) -> Self {
        let needed = input.needed();
        self.parts.add::<T>(Some(Mapping::to_input::<I, T, M>(input)), &needed);
        self
    }

    /// Adds a step that runs once for each item of a list, at most `max_concurrent` items at once (1 to 64). A closure makes
    /// the list: see [`SagaFn`]. It is called once, and the list is stored.
    ///
    /// Each item is a step with its own attempts, record and key, `key:step#n`; the first item has the number 1. The next
    /// step begins when all items are done, and reads their outputs in the order of the list as
    /// [`Outputs<T>`](crate::Outputs). An empty list gives an empty list.
    ///
    /// If an item fails, no other item begins. The items that took effect are undone in the reverse order of their
    /// completion, at most `max_concurrent` at once.
    ///
    /// The step can be a contract that another service hosts. Then each item is a command to that service, with the key of
    /// the item, and its undo is a separate message. The service of the saga keeps the list, and at most `max_concurrent`
    /// items wait for a reply.
    ///
    /// ```
    /// # use saga_core::{Output, Outputs, Saga, StepError, memory::MemoryStore, saga_step};
    /// #[saga_step(no_compensation)]
    /// async fn plan_parcels(order: u32) -> Result<Vec<String>, StepError> {
    ///     Ok((1..=order).map(|number| format!("parcel {number}")).collect())
    /// }
    ///
    /// #[saga_step(no_compensation)]
    /// async fn pack_parcel(parcel: String) -> Result<u32, StepError> {
    ///     Ok(u32::try_from(parcel.len()).unwrap_or(u32::MAX))
    /// }
    ///
    /// #[saga_step(no_compensation)]
    /// async fn book_truck(_order: u32, Outputs(grams): Outputs<pack_parcel>) -> Result<u32, StepError> {
    ///     Ok(grams.iter().sum())
    /// }
    ///
    /// let saga: Saga<MemoryStore, u32> = Saga::named("ship-order")
    ///     .input::<u32>()
    ///     .step::<plan_parcels>()
    ///     .for_each::<pack_parcel, _>(8, |_: &u32, Output(parcels): Output<plan_parcels>| parcels)
    ///     .step::<book_truck>()
    ///     .build()?;
    /// # Ok::<(), saga_core::saga::SagaError>(())
    /// ```
    #[must_use]
    pub fn for_each<T: Handler<S>, M>(mut self, max_concurrent: usize, list: impl SagaFn<I, Vec<T::Input>, M>) -> Self {
        let needed = list.needed();
        self.parts.add_each::<T>(max_concurrent, Mapping::to_list::<I, T, M>(list), &needed);
        self
    }

    /// Adds a saga as a step, with the input of this one. See [`sub_saga_from`](Self::sub_saga_from).
    #[must_use]
    pub fn sub_saga<T: SubSaga<Input: InputOf<I>>>(mut self, saga: &Saga<S, T::Input, T::Output>) -> Self {
        self.parts.add_child::<T>(saga.definition(), None, &[]);
        self
    }

    /// Adds a saga as a step, with an input that a closure makes: see [`SagaFn`]. The sub-saga is a saga like any other on the
    /// same store, with the key `key>step`. It has its own steps, records and history, and operators act on it by its key.
    ///
    /// The step is done when the sub-saga has completed. Its output is what the sub-saga
    /// [returned](super::SagaBuilder::returns). If the sub-saga compensates, the step is rejected with the same reason. When this saga compensates, the sub-saga compensates
    /// too, whether it is running or has completed. While the sub-saga is stuck, this saga waits, and its status
    /// shows the sub-saga ([`StepStatus::child`](crate::engine::StepStatus::child)). A cancel of the sub-saga alone rejects the
    /// step. A pause of one of the two does not pause the other.
    ///
    /// A sub-saga with a pivot cannot be undone, so it must be the pivot of this saga or come after it. A sub-saga can have
    /// sub-sagas and remote steps. The keys of its steps begin with the key of this saga and have at most 255 bytes; a start
    /// with a key that leaves no room for them is refused.
    ///
    /// ```
    /// # use saga_core::{Output, Saga, StepError, SubSaga, memory::MemoryStore, saga_step};
    /// # #[saga_step(no_compensation)]
    /// # async fn pack_parcel(order: u32) -> Result<u32, StepError> { Ok(order) }
    /// # #[saga_step(no_compensation)]
    /// # async fn book_truck(order: u32) -> Result<String, StepError> { Ok(format!("truck {order}")) }
    /// struct Shipping;
    ///
    /// impl SubSaga for Shipping {
    ///     const NAME: &'static str = "shipping";
    ///     type Input = u32;
    ///     type Output = String;
    /// }
    ///
    /// #[saga_step]
    /// async fn write_invoice(_order: u32, Output(truck): Output<Shipping>) -> Result<String, StepError> {
    ///     Ok(format!("comes by {truck}"))
    /// }
    ///
    /// let ship: Saga<MemoryStore, u32, String> = Saga::named("ship")
    ///     .input::<u32>()
    ///     .step::<pack_parcel>()
    ///     .step::<book_truck>()
    ///     .returns::<book_truck>()
    ///     .build()?;
    /// let order: Saga<MemoryStore, u32> = Saga::named("order")
    ///     .input::<u32>()
    ///     .sub_saga_from::<Shipping, _>(&ship, |order: &u32| order + 1)
    ///     .step::<write_invoice>()
    ///     .build()?;
    /// # Ok::<(), saga_core::saga::SagaError>(())
    /// ```
    #[must_use]
    pub fn sub_saga_from<T: SubSaga, M>(
        mut self,
        saga: &Saga<S, T::Input, T::Output>,
        input: impl SagaFn<I, T::Input, M>,
    ) -> Self {
        let needed = input.needed();
        self.parts.add_child::<T>(saga.definition(), Some(Mapping::to_input::<I, T, M>(input)), &needed);
        self
    }

    /// Makes the last added step the pivot: once it is done, the saga only goes forward. A step in a group or an arm cannot
    /// be the pivot; `build()` says what to write instead.
    #[must_use]
    pub fn pivot(mut self) -> Self {
        self.parts.mark_pivot();
        self
    }
}

impl<S: Store, I, P: fmt::Debug> fmt::Debug for StepBuilder<S, I, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("place", &self.place).field("steps", &self.parts.shapes).finish_non_exhaustive()
    }
}
