//! A depot that packs and sends parcels, and counts how many are under way at once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::SagaBuilder;
use saga_core::{Outcome, Output, Outputs, Runtime, Saga, State, StepContext, StepError, saga_compensation, saga_step};

/// What the steps share: which items are refused, what happened, and how many are under way.
#[derive(Clone, Default)]
pub(super) struct Depot(pub(super) Arc<Mutex<Inside>>);

#[derive(Default)]
pub(super) struct Inside {
    pub(super) refused: BTreeSet<u32>,
    pub(super) called: Vec<String>,
    pub(super) under_way: usize,
    pub(super) most: usize,
    /// Each item that is under way waits until so many items were under way at once.
    pub(super) gathers: usize,
}

impl Depot {
    pub(super) fn refusing(refused: &[u32]) -> Self {
        let inside = Inside { refused: refused.iter().copied().collect(), ..Inside::default() };
        Self(Arc::new(Mutex::new(inside)))
    }

    pub(super) fn gathering(gathers: usize) -> Self {
        Self(Arc::new(Mutex::new(Inside { gathers, ..Inside::default() })))
    }

    pub(super) fn has_gathered(&self) -> bool {
        let inside = self.0.lock().unwrap();
        inside.most >= inside.gathers
    }

    pub(super) fn refuse(&self, item: u32) -> Result<(), StepError> {
        if self.0.lock().unwrap().refused.contains(&item) {
            return Err(StepError::reject("it is refused"));
        }
        Ok(())
    }

    pub(super) fn enter(&self) {
        let mut inside = self.0.lock().unwrap();
        inside.under_way += 1;
        inside.most = inside.most.max(inside.under_way);
    }

    pub(super) fn leave(&self) {
        self.0.lock().unwrap().under_way -= 1;
    }

    /// What was called outside, and what was committed.
    pub(super) fn happened(&self, store: &MemoryStore) -> Vec<String> {
        let text = |entry: &Vec<u8>| String::from_utf8(entry.clone()).unwrap();
        let mut happened: Vec<String> = store.read(|table| table.log().iter().map(text).collect());
        happened.extend(self.0.lock().unwrap().called.iter().cloned());
        happened
    }
}

#[saga_step(no_compensation)]
pub(super) async fn plan(_tx: &mut MemoryConn, parcels: u32) -> Result<Vec<u32>, StepError> {
    Ok((1..=parcels).collect())
}

/// In a transaction.
#[saga_step(compensate = unpack)]
pub(super) async fn pack(tx: &mut MemoryConn, parcel: u32, State(depot): State<Depot>) -> Result<String, StepError> {
    tx.put(format!("packed {parcel}").as_str(), parcel.to_be_bytes())?;
    tx.log(format!("pack {parcel}"));
    depot.refuse(parcel)?;
    Ok(format!("box {parcel}"))
}

#[saga_compensation]
pub(super) async fn unpack(tx: &mut MemoryConn, parcel: u32, packed: String) -> Result<(), StepError> {
    assert_eq!(packed, format!("box {parcel}"), "a compensation gets what its own item took and gave");
    tx.delete(&format!("packed {parcel}"))?;
    tx.log(format!("unpack {parcel}"));
    Ok(())
}

/// Outside any transaction.
#[saga_step(compensate = unsend)]
pub(super) async fn send(ctx: &StepContext, parcel: u32, State(depot): State<Depot>) -> Result<String, StepError> {
    depot.enter();
    for turn in 0.. {
        if turn >= 20 && depot.has_gathered() {
            break;
        }
        tokio::task::yield_now().await;
    }
    depot.leave();
    depot.refuse(parcel)?;
    depot.0.lock().unwrap().called.push(format!("send {parcel}"));
    Ok(ctx.key().to_string())
}

#[saga_compensation]
pub(super) async fn unsend(
    _ctx: &StepContext,
    parcel: u32,
    sent: String,
    State(depot): State<Depot>,
) -> Result<(), StepError> {
    assert!(sent.ends_with(&format!(":send#{parcel}")), "a compensation gets what its own item gave: {sent}");
    depot.0.lock().unwrap().called.push(format!("unsend {parcel}"));
    Ok(())
}

#[saga_step(compensate = unbill)]
pub(super) async fn bill(
    tx: &mut MemoryConn,
    parcels: u32,
    Outputs(packed): Outputs<pack>,
    State(depot): State<Depot>,
) -> Result<(), StepError> {
    depot.refuse(0)?;
    tx.put(format!("bill of {parcels}").as_str(), packed.join(",").into_bytes())?;
    Ok(())
}

#[saga_compensation]
pub(super) async fn unbill(_tx: &mut MemoryConn, _parcels: u32, _billed: ()) -> Result<(), StepError> {
    Ok(())
}

pub(super) fn packing(at_once: usize) -> Saga<MemoryStore, u32> {
    new()
        .step::<plan>()
        .for_each::<pack, _>(at_once, |_: &u32, Output(list): Output<plan>| list)
        .step::<bill>()
        .build()
        .unwrap()
}

pub(super) fn sending(at_once: usize) -> Saga<MemoryStore, u32> {
    new().for_each::<send, _>(at_once, |parcels: &u32| (1..=*parcels).collect()).build().unwrap()
}

pub(super) fn new() -> SagaBuilder<MemoryStore, u32> {
    Saga::named("ship").input::<u32>()
}

pub(super) async fn runtime(store: &MemoryStore, saga: &Saga<MemoryStore, u32>, depot: &Depot) -> Runtime<MemoryStore> {
    Runtime::builder(store.clone()).saga(saga).state(depot.clone()).start().await.unwrap()
}

pub(super) async fn run(saga: &Saga<MemoryStore, u32>, depot: &Depot, parcels: u32) -> (MemoryStore, Outcome) {
    let store = MemoryStore::new();
    let runtime = runtime(&store, saga, depot).await;
    let outcome = runtime.start(saga, "o-1", parcels).await.unwrap().outcome().await.unwrap();
    runtime.shutdown().await;
    (store, outcome)
}

pub(super) fn boxes(parcels: u32) -> String {
    (1..=parcels).map(|parcel| format!("box {parcel}")).collect::<Vec<_>>().join(",")
}
