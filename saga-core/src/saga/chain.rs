use std::fmt;
use std::marker::PhantomData;

use super::parts::Parts;
use super::{Branch, Choice, Group, Mapping, Saga, SagaFn, SubSaga};
use crate::step::{Handler, InputOf, Payload};
use crate::store::Store;

/// The arm of a choice that has only one.
const ONLY_ARM: &str = "yes";

/// Steps that run one after the other, and get further ones: those of a saga ([`SagaBuilder`](super::SagaBuilder)), or of
/// a branch of a group or an arm of a choice ([`Branch`]).
pub struct StepBuilder<S: Store, I, P> {
    pub(super) parts: Parts<S>,
    /// What it is that gets the steps.
    pub(super) place: P,
    input: PhantomData<fn(I)>,
}

impl<S: Store, I, P> StepBuilder<S, I, P> {
    pub(super) fn new(parts: Parts<S>, place: P) -> Self {
        Self { parts, place, input: PhantomData }
    }
}

impl<S: Store, I: Payload, P> StepBuilder<S, I, P> {
    /// Adds a step whose input is the saga's.
    #[must_use]
    pub fn step<T: Handler<S, Input: InputOf<I>>>(mut self) -> Self {
        self.parts.add::<T>(None, &[]);
        self
    }

    /// Adds a step whose input a closure of the definition makes, of the saga's input and of what earlier steps returned: see
    /// [`SagaFn`]. The closure is called once; what it returns is stored with the command.
    ///
    /// A step in a branch of a group reads steps of its branch and steps in front of the group.
    #[must_use]
    pub fn step_from<T: Handler<S>, M>(mut self, input: impl SagaFn<I, T::Input, M>) -> Self {
        let needed = input.needed();
        self.parts.add::<T>(Some(Mapping::to_input::<I, T, M>(input)), &needed);
        self
    }

    /// Adds a step that runs once for each item of a list, at most `max_concurrent` of them at a time (1 to 64). A closure of
    /// the definition makes the list: see [`SagaFn`]. It is called once, and the list is stored.
    ///
    /// Each item is a step of its own: with its own attempts, its own record, and a key of its own, `key:step#n`, where
    /// the first item has the number 1. The next step begins when every item is done, and takes what they gave, in
    /// the order of the list, as [`Outputs<T>`](crate::Outputs). An empty list gives an empty list.
    ///
    /// When an item fails, no other begins. Those that took effect are undone in the reverse order of their completion, at
    /// most `max_concurrent` at a time.
    ///
    /// The step may be a contract, which another service hosts. Then each item is a command to that service, with the
    /// item's key, and is undone by a message of its own; the list stays here, and at most
    /// `max_concurrent` items wait for a reply.
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

    /// Adds branches that run side by side. What stands behind the group begins when every branch of it is done.
    ///
    /// When a step of a branch fails, no other of the saga begins. What took effect is undone once nothing of it is in
    /// flight: in the reverse order of completion along each branch, and the branches side by side. Each
    /// [`Branch`](super::Branch) is a chain of one or more steps, and may hold groups itself.
    ///
    /// ```
    /// # use saga_core::{Output, Saga, StepError, memory::MemoryStore, saga_step};
    /// # #[saga_step(no_compensation)]
    /// # async fn charge_card(order: u32) -> Result<u32, StepError> { Ok(order) }
    /// # #[saga_step(no_compensation)]
    /// # async fn book_shipment(order: u32) -> Result<String, StepError> { Ok(format!("parcel {order}")) }
    /// # #[saga_step(no_compensation)]
    /// # async fn print_label(parcel: String) -> Result<(), StepError> { Ok(()) }
    /// # #[saga_step(no_compensation)]
    /// # async fn confirm_order(order: u32) -> Result<(), StepError> { Ok(()) }
    /// let saga: Saga<MemoryStore, u32> = Saga::named("create-order")
    ///     .input::<u32>()
    ///     .parallel(|group| {
    ///         group
    ///             .branch(|branch| branch.step::<charge_card>())
    ///             .branch(|branch| {
    ///                 branch
    ///                     .step::<book_shipment>()
    ///                     .step_from::<print_label, _>(|_: &u32, Output(parcel): Output<book_shipment>| parcel)
    ///             })
    ///     })
    ///     .step::<confirm_order>()
    ///     .build()?;
    /// # Ok::<(), saga_core::saga::SagaError>(())
    /// ```
    #[must_use]
    pub fn parallel(mut self, branches: impl FnOnce(Group<S, I>) -> Group<S, I>) -> Self {
        self.parts = branches(Group::begin(self.parts)).end();
        self
    }

    /// Adds a choice, of whose arms the first one that holds runs, and no other. Without an
    /// [`otherwise`](Choice::otherwise), and where none holds, the saga goes on behind it.
    ///
    /// Which arm runs is recorded under the name of the choice, which is 1 to 40 bytes of `[a-z0-9-]` and none of a step:
    /// it is decided once, whatever crashes, and the conditions are not asked again. One that panics makes the saga stuck,
    /// and a person may have it tried again, or decide (`skip_with(&"express")`).
    ///
    /// Inside its arm the output of a step is read as anywhere. Behind the choice the step may not have run, so there it is
    /// read as `Option<Output<step>>`.
    ///
    /// ```
    /// # use saga_core::{Output, Saga, StepError, memory::MemoryStore, saga_step};
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Order {
    ///     pieces: u32,
    ///     is_express: bool,
    /// }
    ///
    /// #[saga_step(no_compensation)]
    /// async fn reserve_stock(order: Order) -> Result<u32, StepError> {
    ///     Ok(order.pieces.min(10))
    /// }
    /// # #[saga_step(no_compensation)]
    /// # async fn call_courier(_order: Order) -> Result<String, StepError> { Ok("tonight".to_owned()) }
    /// # #[saga_step(no_compensation)]
    /// # async fn split_parcels(_order: Order) -> Result<u32, StepError> { Ok(2) }
    /// # #[saga_step(no_compensation)]
    /// # async fn pack_parcel(_order: Order) -> Result<(), StepError> { Ok(()) }
    ///
    /// #[saga_step(no_compensation)]
    /// async fn write_invoice(_order: Order, courier: Option<Output<call_courier>>) -> Result<String, StepError> {
    ///     Ok(courier.map_or("delivery: free".to_owned(), |Output(when)| format!("courier: {when}")))
    /// }
    ///
    /// let saga: Saga<MemoryStore, Order> = Saga::named("ship-order")
    ///     .input::<Order>()
    ///     .step::<reserve_stock>()
    ///     .choose("shipping", |choice| {
    ///         choice
    ///             .when("express", |order: &Order| order.is_express, |branch| branch.step::<call_courier>())
    ///             .when(
    ///                 "in-parts",
    ///                 |order: &Order, Output(reserved): Output<reserve_stock>| reserved < order.pieces,
    ///                 |branch| branch.step::<split_parcels>(),
    ///             )
    ///             .otherwise(|branch| branch.step::<pack_parcel>())
    ///     })
    ///     .step::<write_invoice>()
    ///     .build()?;
    /// # Ok::<(), saga_core::saga::SagaError>(())
    /// ```
    #[must_use]
    pub fn choose(mut self, name: &'static str, arms: impl FnOnce(Choice<S, I>) -> Choice<S, I>) -> Self {
        self.parts = arms(Choice::begin(self.parts, name)).end();
        self
    }

    /// Adds steps that run only if a condition holds: a [choice](Self::choose) with one arm, `yes`. A closure of the
    /// definition is the condition: see [`SagaFn`].
    ///
    /// ```
    /// # use saga_core::{Saga, StepError, memory::MemoryStore, saga_step};
    /// # #[saga_step(no_compensation)]
    /// # async fn check_limit(_total: u64) -> Result<(), StepError> { Ok(()) }
    /// # #[saga_step(no_compensation)]
    /// # async fn charge_card(_total: u64) -> Result<(), StepError> { Ok(()) }
    /// let saga: Saga<MemoryStore, u64> = Saga::named("pay")
    ///     .input::<u64>()
    ///     .when("is-large", |total: &u64| *total > 100_000, |branch| branch.step::<check_limit>())
    ///     .step::<charge_card>()
    ///     .build()?;
    /// # Ok::<(), saga_core::saga::SagaError>(())
    /// ```
    #[must_use]
    pub fn when<M>(
        self,
        name: &'static str,
        holds: impl SagaFn<I, bool, M>,
        steps: impl FnOnce(Branch<S, I>) -> Branch<S, I>,
    ) -> Self {
        self.choose(name, |choice| choice.when(ONLY_ARM, holds, steps))
    }

    /// Adds a saga as a step, with the input of this one. See [`sub_saga_from`](Self::sub_saga_from).
    #[must_use]
    pub fn sub_saga<T: SubSaga<Input: InputOf<I>>>(mut self, saga: &Saga<S, T::Input>) -> Self {
        self.parts.add_child::<T>(saga.definition(), None, &[]);
        self
    }

    /// Adds a saga as a step, with an input that a closure of the definition makes: see [`SagaFn`]. The sub-saga is a saga
    /// like any other, under the key `key>step`, on the same store: it has steps, records and a history of its own, and
    /// operators act on it by its key.
    ///
    /// The step is done when the sub-saga has completed. Its output is that of the [`Result`](SubSaga::Result) step. If the
    /// sub-saga compensates, the step is rejected with the same reason. When this saga compensates, the sub-saga compensates
    /// too, whether it is running or has completed. While the sub-saga needs an operator, this saga waits, and its status
    /// shows the sub-saga ([`StepStatus::child`](crate::engine::StepStatus::child)). A cancel of the sub-saga alone rejects the
    /// step. A pause of one of the two does not pause the other.
    ///
    /// A sub-saga with a pivot cannot be undone, so no later step may fail. A sub-saga may have sub-sagas itself, and steps
    /// that other services host. The keys of its steps begin with this saga's key and have at most 255 bytes: a start with a
    /// key that leaves no room for them is refused.
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
    ///     type Result = book_truck;
    /// }
    ///
    /// #[saga_step]
    /// async fn write_invoice(_order: u32, Output(truck): Output<Shipping>) -> Result<String, StepError> {
    ///     Ok(format!("comes by {truck}"))
    /// }
    ///
    /// let ship: Saga<MemoryStore, u32> =
    ///     Saga::named("ship").input::<u32>().step::<pack_parcel>().step::<book_truck>().build()?;
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
        saga: &Saga<S, T::Input>,
        input: impl SagaFn<I, T::Input, M>,
    ) -> Self {
        let needed = input.needed();
        self.parts.add_child::<T>(saga.definition(), Some(Mapping::to_input::<I, T, M>(input)), &needed);
        self
    }

    /// Makes the step that was added last the pivot: once it is done the saga only goes forward. No step of a group or of
    /// an arm can be it: `build()` says what to write instead.
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
