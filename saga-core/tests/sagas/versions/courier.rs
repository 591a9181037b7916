//! Orders that are sent, by way of a choice or without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use saga_core::engine::{RuntimeError, SagaStatus, StepStatus};
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::{
    Migration, Outcome, Output, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step,
};
use tokio::sync::Notify;

/// Who waits until the courier was called, and how often he says no.
#[derive(Clone, Default)]
pub(crate) struct Courier {
    pub(crate) was_called: Arc<Notify>,
    /// 0 while nobody answers, 1 if he comes, 2 if he does not.
    answer: Arc<AtomicU32>,
}

impl Courier {
    pub(crate) fn says(&self, answer: u32) {
        self.answer.store(answer, Ordering::SeqCst);
    }
}

#[saga_step(compensate = unpack)]
pub(crate) async fn pack(tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    tx.log(format!("pack {order}"));
    Ok(order)
}

#[saga_compensation]
pub(crate) async fn unpack(tx: &mut MemoryConn, order: u32, _packed: u32) -> Result<(), StepError> {
    tx.log(format!("unpack {order}"));
    Ok(())
}

#[saga_step(compensate = unwrap_again)]
pub(crate) async fn wrap(tx: &mut MemoryConn, order: u32) -> Result<(), StepError> {
    tx.log(format!("wrap {order}"));
    Ok(())
}

#[saga_compensation]
pub(crate) async fn unwrap_again(tx: &mut MemoryConn, order: u32, _wrapped: ()) -> Result<(), StepError> {
    tx.log(format!("unwrap {order}"));
    Ok(())
}

#[saga_step(compensate = unweigh)]
pub(crate) async fn weigh(tx: &mut MemoryConn, order: u32) -> Result<u32, StepError> {
    tx.log(format!("weigh {order}"));
    Ok(order)
}

#[saga_compensation]
pub(crate) async fn unweigh(_tx: &mut MemoryConn, _order: u32, _weight: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation, retry(attempts = 1000, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
pub(crate) async fn call_courier(
    _ctx: &StepContext,
    _order: u32,
    State(courier): State<Courier>,
) -> Result<(), StepError> {
    courier.was_called.notify_one();
    match courier.answer.load(Ordering::SeqCst) {
        0 => Err(StepError::not_sent("nobody answers")),
        1 => Ok(()),
        _ => Err(StepError::reject("he does not come")),
    }
}

#[saga_step(compensate = unbill)]
pub(crate) async fn bill(
    tx: &mut MemoryConn,
    order: u32,
    packed: Option<Output<pack>>,
    weight: Option<Output<weigh>>,
) -> Result<(), StepError> {
    let (packed, weight) = (packed.map(|Output(packed)| packed), weight.map(|Output(weight)| weight));
    tx.log(format!("bill {order}, {packed:?}, {weight:?}"));
    Ok(())
}

#[saga_compensation]
pub(crate) async fn unbill(_tx: &mut MemoryConn, _order: u32, _billed: ()) -> Result<(), StepError> {
    Ok(())
}

pub(crate) type Ship = Saga<MemoryStore, u32>;

/// Orders from 100 on are parcels, the others letters. Then the courier is called.
pub(crate) fn v1() -> Ship {
    Saga::named("ship")
        .input()
        .choose("shipping", |choice| {
            choice.when("parcel", |order: &u32| *order >= 100, Branch::step::<pack>).otherwise(Branch::step::<wrap>)
        })
        .step::<call_courier>()
        .build()
        .unwrap()
}

/// The condition is another one, the arms stand in another order, and there is one more. A bill is made in the end.
pub(crate) fn v2() -> Ship {
    Saga::named("ship")
        .input()
        .version(2)
        .choose("shipping", |choice| {
            choice
                .when("heavy", |order: &u32| *order >= 100, Branch::step::<weigh>)
                .when("parcel", |_: &u32| false, Branch::step::<pack>)
                .otherwise(Branch::step::<wrap>)
        })
        .step::<call_courier>()
        .step::<bill>()
        .build()
        .unwrap()
}

pub(crate) async fn runtime(store: &MemoryStore, courier: &Courier, saga: &Ship) -> Runtime<MemoryStore> {
    Runtime::builder(store.clone()).state(courier.clone()).saga(saga).start().await.unwrap()
}

/// A store with a saga that has called the courier, who does not answer.
pub(crate) async fn waiting(saga: &Ship, courier: &Courier, order: u32) -> MemoryStore {
    let store = MemoryStore::new();
    let runtime = runtime(&store, courier, saga).await;
    runtime.start(saga, "k-1", order).await.unwrap();
    courier.was_called.notified().await;
    runtime.shutdown().await;
    store
}

pub(crate) fn log(store: &MemoryStore) -> Vec<String> {
    store.read(|table| table.log().iter().map(|entry| String::from_utf8(entry.clone()).unwrap()).collect())
}

/// Moves the saga, lets the courier answer, and waits for its end.
pub(crate) async fn move_and_end(
    store: &MemoryStore,
    courier: &Courier,
    (to, migration): (&Ship, &Migration<MemoryStore>),
    answer: u32,
) -> Result<(Outcome, SagaStatus), String> {
    let runtime = runtime(store, courier, to).await;
    let moved = runtime.admin().control("k-1").migrate(migration, "test").await;
    let ended = match moved {
        Ok(()) => {
            courier.says(answer);
            let outcome = runtime.attach("k-1").await.unwrap().outcome().await.unwrap();
            Ok((outcome, runtime.status("k-1").await.unwrap().unwrap()))
        }
        Err(RuntimeError::Refused { problem, .. }) => Err(problem),
        Err(error) => panic!("{error}"),
    };
    runtime.shutdown().await;
    ended
}

pub(crate) fn step<'a>(status: &'a SagaStatus, name: &str) -> &'a StepStatus {
    status.steps.iter().find(|step| step.step == name).unwrap()
}

/// Without choices the steps of arms stand on the main line, and the other way round.
pub(crate) fn plain() -> Ship {
    Saga::named("ship").input().version(4).step::<pack>().step::<call_courier>().step::<wrap>().build().unwrap()
}
