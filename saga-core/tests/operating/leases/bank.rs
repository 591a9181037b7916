//! The world outside, which counts who calls it, and a store that a process can be cut off from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryStore};
use saga_core::store::{StoreError, StoreErrorKind};
use saga_core::{Runtime, Saga, Settings, State, StepContext, StepError, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// An order to be paid.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: u32,
    /// How long the call takes.
    pub(crate) millis: u64,
    pub(crate) declined: bool,
}

/// A bank, as one process sees it.
#[derive(Clone, Default)]
pub(crate) struct Bank {
    pub(crate) books: Arc<Mutex<Books>>,
    /// It answers this process with an error, and has done nothing.
    pub(crate) refuses: bool,
    /// It does what this process asks for, and its answer is lost.
    pub(crate) loses_answers: bool,
}

#[derive(Default)]
pub(crate) struct Books {
    /// How often each step key was called.
    pub(crate) calls: BTreeMap<String, u32>,
    /// The step keys whose charges stand.
    pub(crate) charged: BTreeSet<String>,
    pub(crate) under_way: usize,
    pub(crate) most_under_way: usize,
    /// When the last call ended.
    pub(crate) ended: Option<Instant>,
}

impl Bank {
    pub(crate) fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// How many step keys were called.
    pub(crate) fn called(&self) -> usize {
        self.books().calls.len()
    }

    /// How many step keys were called more than once.
    pub(crate) fn called_again(&self) -> usize {
        self.books().calls.values().filter(|calls| **calls > 1).count()
    }
}

/// Leaves the bank also where its call is dropped.
struct Inside(Bank);

impl Drop for Inside {
    fn drop(&mut self) {
        let mut books = self.0.books();
        books.under_way -= 1;
        books.ended = Some(Instant::now());
    }
}

async fn call(bank: &Bank, key: &str, order: Order) -> Result<u32, StepError> {
    let inside = {
        let mut books = bank.books();
        *books.calls.entry(key.to_owned()).or_default() += 1;
        books.under_way += 1;
        books.most_under_way = books.most_under_way.max(books.under_way);
        Inside(bank.clone())
    };
    tokio::time::sleep(Duration::from_millis(order.millis)).await;
    drop(inside);
    if bank.refuses {
        return Err(std::io::Error::other("503"))?;
    }
    if order.declined {
        return Err(StepError::reject("card declined"));
    }
    bank.books().charged.insert(key.to_owned());
    if bank.loses_answers { Err(std::io::Error::other("no answer"))? } else { Ok(order.number) }
}

/// Its compensation needs what it returned, so that an unknown outcome is stuck.
#[saga_step(compensate = pay_back, timeout = "30s", retry(attempts = 1, base = "1s"), on_exhausted = "compensate")]
pub(crate) async fn pay(ctx: &StepContext, order: Order, State(bank): State<Bank>) -> Result<u32, StepError> {
    call(&bank, ctx.key(), order).await
}

#[saga_compensation]
pub(crate) async fn pay_back(
    ctx: &StepContext,
    _order: Order,
    _paid: u32,
    State(bank): State<Bank>,
) -> Result<(), StepError> {
    bank.books().charged.remove(ctx.original_key());
    Ok(())
}

/// Its compensation also undoes what may have happened.
#[saga_step(compensate = refund, timeout = "1s", retry(attempts = 1, base = "1s"), on_exhausted = "compensate")]
pub(crate) async fn charge(ctx: &StepContext, order: Order, State(bank): State<Bank>) -> Result<u32, StepError> {
    call(&bank, ctx.key(), order).await
}

#[saga_compensation]
pub(crate) async fn refund(
    ctx: &StepContext,
    _order: Order,
    _paid: Option<u32>,
    State(bank): State<Bank>,
) -> Result<(), StepError> {
    bank.books().charged.remove(ctx.original_key());
    Ok(())
}

/// It takes hours, and is to be recovered.
#[saga_step(exclusive, no_compensation, timeout = "8h", retry(attempts = 3, base = "1s"), on_exhausted = "compensate")]
pub(crate) async fn settle(ctx: &StepContext, order: Order, State(bank): State<Bank>) -> Result<u32, StepError> {
    call(&bank, ctx.key(), order).await
}

pub(crate) fn paying() -> Saga<MemoryStore, Order> {
    Saga::named("paying").input::<Order>().step::<pay>().build().unwrap()
}

pub(crate) fn charging() -> Saga<MemoryStore, Order> {
    Saga::named("charging").input::<Order>().step::<charge>().build().unwrap()
}

pub(crate) fn settling() -> Saga<MemoryStore, Order> {
    Saga::named("settling").input::<Order>().step::<settle>().build().unwrap()
}

/// The way from one process to its store.
#[derive(Clone, Default)]
pub(crate) struct Way(Arc<AtomicBool>);

impl Way {
    pub(crate) fn cut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn mend(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl CommitHook for Way {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        let is_cut = self.0.load(Ordering::SeqCst);
        Box::pin(async move {
            match point {
                CommitPoint::Reading(operation) | CommitPoint::Committing(operation) if is_cut => {
                    CommitFate::Fail(StoreError::new(StoreErrorKind::Unavailable, operation, "no connection"))
                }
                _ => CommitFate::Proceed,
            }
        })
    }
}

/// A process. Dropped, it ends as if it were killed.
pub(crate) struct Process {
    pub(crate) runtime: Runtime<MemoryStore>,
    pub(crate) way: Way,
}

pub(crate) async fn process(store: &MemoryStore, bank: &Bank, settings: impl FnOnce(&mut Settings)) -> Process {
    let way = Way::default();
    let store = store.clone().with_commit_hook(Arc::new(way.clone()));
    let builder = Runtime::builder(store).saga(&paying()).saga(&charging()).saga(&settling());
    let runtime = builder.state(bank.clone()).settings(settings).start().await.unwrap();
    Process { runtime, way }
}
