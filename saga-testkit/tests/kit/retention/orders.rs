//! Orders that are kept for a time, and how old they are.

use std::time::Duration;

use saga_core::engine::RuntimeBuilder;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::Sagas as _;
use saga_core::{
    Key, Outcome, Output, Retention, Runtime, Saga, StepError, SubSaga, Tenant, saga_compensation, saga_step,
};
use saga_testkit::VirtualTime;

pub(super) const DAY: Duration = Duration::from_hours(24);
/// The maintenance task looks at least so often.
pub(super) const PASS: Duration = Duration::from_mins(11);

pub(super) mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "carrier", compensated)]
    pub async fn book_truck(order: u32) -> Result<u32, StepError>;
}

#[saga_step(implements = contracts::book_truck, compensate = cancel_truck)]
pub(super) async fn book_truck(order: u32) -> Result<u32, StepError> {
    if order == 77 { Err(StepError::stuck("the truck has to be found")) } else { Ok(order) }
}

#[saga_compensation]
pub(super) async fn cancel_truck(_order: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = put_back)]
pub(super) async fn take_out(tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    tx.add("taken", 1)?;
    Ok(order)
}

#[saga_compensation]
pub(super) async fn put_back(tx: &mut MemoryConn, _order: u32) -> Result<(), StepError> {
    tx.add("taken", -1)?;
    Ok(())
}

/// Nobody wants order 13, and order 99 needs a person.
#[saga_step(no_compensation)]
pub(super) async fn approve(order: u32) -> Result<(), StepError> {
    match order {
        13 => Err(StepError::reject("nobody wants it")),
        99 => Err(StepError::stuck("a person has to look at it")),
        _ => Ok(()),
    }
}

pub(super) struct Shipping;

impl SubSaga for Shipping {
    const NAME: &'static str = "shipping";
    type Input = u32;
    type Output = u32;
}

#[saga_step(no_compensation)]
pub(super) async fn bill(
    tx: &mut MemoryConn,
    _order: u32,
    Output(_shipped): Output<Shipping>,
) -> Result<(), StepError> {
    tx.add("billed", 1)?;
    Ok(())
}

pub(super) fn orders(retention: Option<Retention>) -> Saga<MemoryStore, u32> {
    let saga = Saga::named("order").input();
    let saga = if let Some(retention) = retention { saga.retention(retention) } else { saga };
    saga.step::<take_out>().step::<approve>().build().unwrap()
}

pub(super) struct Test {
    pub(super) time: VirtualTime,
    pub(super) store: MemoryStore,
    pub(super) saga: Saga<MemoryStore, u32>,
    pub(super) runtime: Runtime<MemoryStore>,
}

impl Test {
    pub(super) async fn of(
        saga: Saga<MemoryStore, u32>,
        with: impl FnOnce(RuntimeBuilder<MemoryStore>) -> RuntimeBuilder<MemoryStore>,
    ) -> Self {
        let time = VirtualTime::new();
        let store = MemoryStore::with_environment(time.environment());
        let runtime = Runtime::builder(store.clone()).environment(time.environment()).saga(&saga);
        let runtime = with(runtime).start().await.unwrap();
        Self { time, store, saga, runtime }
    }

    pub(super) async fn keeping(retention: Retention) -> Self {
        Self::of(orders(Some(retention)), |builder| builder).await
    }

    pub(super) async fn run(&self, key: &str, order: u32) -> Outcome {
        self.runtime.start(&self.saga, key, order).await.unwrap().outcome().await.unwrap()
    }

    /// Whether the saga is kept in full, as a tombstone, or not at all.
    pub(super) async fn age(&self, key: &str) -> &'static str {
        let row = self.store.saga(&Tenant::default(), &Key::from_stored(key).unwrap()).await.unwrap();
        match row {
            None => "deleted",
            Some(row) if row.is_tombstone() => "tombstone",
            Some(_) => "full",
        }
    }

    pub(super) async fn ages(&self, keys: &[&str]) -> Vec<&'static str> {
        let mut ages = Vec::new();
        for key in keys {
            ages.push(self.age(key).await);
        }
        ages
    }
}
