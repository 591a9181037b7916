//! What a saga returns: the last word of its definition.

use std::fmt;
use std::marker::PhantomData;

use super::{Mapping, ResultOf, Saga, SagaBuilder, SagaError, SagaFn};
use crate::step::{FromOutputs, NeededOutput, Output, Payload, Step};
use crate::store::Store;

/// A definition that says what its sagas return, and only needs to be built.
pub struct SagaWithResult<S: Store, I, R> {
    builder: SagaBuilder<S, I>,
    result: ResultOf,
    returned: PhantomData<fn() -> R>,
}

impl<S: Store, I: Payload> SagaBuilder<S, I> {
    /// The saga returns the output of this step, which must always run. It is the last word before `build`.
    ///
    /// The result is stored in the commit that completes the saga. [`SagaHandle::result`](crate::SagaHandle::result) waits for
    /// it, [`Outcome::Completed`](crate::Outcome::Completed) and the status have it, and for a saga that is a
    /// [step of another one](Self::sub_saga) it is the output of that step.
    ///
    /// What a saga returns can change without a new version of the definition: sagas that have completed keep their results.
    ///
    /// ```
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Runtime, Saga, SagaFailure, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation)]
    /// async fn charge_card(cents: u32) -> Result<String, StepError> {
    ///     if cents > 500 { Err(StepError::reject("the limit is 5 euros")) } else { Ok(format!("payment of {cents}")) }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pay = Saga::named("pay").input::<u32>().step::<charge_card>().returns::<charge_card>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&pay).start().await?;
    ///
    /// let payment: String = runtime.start(&pay, "order-1", 300).await?.result().await?;
    /// assert_eq!(payment, "payment of 300");
    ///
    /// let failure = runtime.start(&pay, "order-2", 700).await?.result().await.unwrap_err();
    /// assert!(matches!(&failure, SagaFailure::StepFailed { step, .. } if step == "charge-card"));
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn returns<T: Step>(mut self) -> SagaWithResult<S, I, T::Output> {
        let reads = [Output::<T>::needed()];
        self.parts.check_result(".returns", &reads);
        SagaWithResult::new(self, Mapping::of_output(T::NAME), &reads)
    }

    /// The saga returns what a closure makes of its input and of the outputs of its steps: see [`SagaFn`]. It is the last word
    /// before `build`; the rest is as for [`returns`](Self::returns).
    ///
    /// If the closure panics, or what it returns cannot be stored, the saga completes without a result, since all of its
    /// steps have taken effect. [`SagaHandle::result`](crate::SagaHandle::result) then says why.
    ///
    /// ```
    /// # use saga_core::{Output, Saga, StepError, memory::MemoryStore, saga_step};
    /// # #[saga_step(no_compensation)]
    /// # async fn charge_card(order: u32) -> Result<String, StepError> { Ok(format!("payment of {order}")) }
    /// # #[saga_step(no_compensation)]
    /// # async fn book_truck(order: u32) -> Result<u32, StepError> { Ok(order + 1) }
    /// let order: Saga<MemoryStore, u32, (String, u32)> = Saga::named("order")
    ///     .input::<u32>()
    ///     .step::<charge_card>()
    ///     .step::<book_truck>()
    ///     .returns_from(|_: &u32, Output(payment): Output<charge_card>, Output(truck): Output<book_truck>| (payment, truck))
    ///     .build()?;
    /// # Ok::<(), saga_core::saga::SagaError>(())
    /// ```
    #[must_use]
    pub fn returns_from<R: Payload, M>(mut self, result: impl SagaFn<I, R, M>) -> SagaWithResult<S, I, R> {
        let reads = result.needed();
        self.parts.check_result(".returns_from", &reads);
        SagaWithResult::new(self, Mapping::to_value::<I, R, M>(result), &reads)
    }
}

impl<S: Store, I: Payload, R> SagaWithResult<S, I, R> {
    fn new(builder: SagaBuilder<S, I>, mapping: Mapping, reads: &[NeededOutput]) -> Self {
        let reads = reads.iter().map(|needed| needed.step).collect();
        Self { builder, result: ResultOf::new(mapping, reads), returned: PhantomData }
    }

    /// Checks the definition.
    ///
    /// # Errors
    /// All problems of the definition, each with its remedy.
    pub fn build(self) -> Result<Saga<S, I, R>, SagaError> {
        Ok(Saga::of(self.builder.define(Some(self.result))?))
    }
}

impl<S: Store, I, R> fmt::Debug for SagaWithResult<S, I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaWithResult").field("saga", &self.builder).field("reads", &self.result.reads).finish()
    }
}
