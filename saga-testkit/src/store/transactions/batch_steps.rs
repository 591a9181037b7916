//! Batch steps through the runtime: one call writes for many sagas, and each has what is its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use saga_core::engine::Statistics;
use saga_core::store::Store;
use saga_core::{Batch, BatchResults, Runtime, Saga, Settings, State, StepError, saga_step};
use serde::{Deserialize, Serialize};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::Bench;
use crate::harness::StoreHarness;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    id: i64,
    trouble: Option<Trouble>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Trouble {
    /// It is rejected by its answer.
    SoldOut,
    /// It is answered with an error that is retried, once.
    NotNow,
    /// It sends a statement that fails.
    BadStatement,
    Panics,
    EndsTransaction,
}

/// What the steps are run with.
struct Site<H> {
    harness: Arc<H>,
    /// How many orders each call of `reserve_stock` had.
    calls: Arc<Mutex<Vec<usize>>>,
    /// The orders that were put off once.
    put_off: Arc<Mutex<BTreeSet<i64>>>,
}

impl<H> Clone for Site<H> {
    fn clone(&self) -> Self {
        Self { harness: Arc::clone(&self.harness), calls: Arc::clone(&self.calls), put_off: Arc::clone(&self.put_off) }
    }
}

/// Writes for each order that gets its stock a row, named by the key of its call.
#[saga_step(no_compensation, retry(attempts = 2, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn reserve_stock<H: StoreHarness>(
    tx: &mut <H::Store as Store>::Conn,
    orders: Batch<Order>,
    State(site): State<Site<H>>,
) -> Result<BatchResults<i64>, StepError> {
    site.calls.lock().unwrap_or_else(PoisonError::into_inner).push(orders.len());
    let mut reserved = BTreeSet::new();
    for (order, key) in orders.iter().zip(orders.keys()) {
        match order.trouble {
            Some(Trouble::SoldOut) => continue,
            Some(Trouble::NotNow) => {
                if site.put_off.lock().unwrap_or_else(PoisonError::into_inner).insert(order.id) {
                    continue;
                }
            }
            Some(Trouble::BadStatement) => return Err(StepError::retry(site.harness.fail_statement(tx).await)),
            Some(Trouble::EndsTransaction) => site.harness.end_transaction(tx).await,
            Some(Trouble::Panics) | None => {}
        }
        site.harness.write_business(tx, key, order.id).await.map_err(StepError::retry)?;
        reserved.insert(order.id);
        assert!(order.trouble != Some(Trouble::Panics), "the warehouse is on fire");
    }
    Ok(orders.map_each(|order| match order.trouble {
        _ if reserved.contains(&order.id) => Ok(order.id * 10),
        Some(Trouble::SoldOut) => Err(StepError::reject("sold out")),
        _ => Err(StepError::retry("not now")),
    }))
}

#[saga_step]
async fn confirm_orders<H: StoreHarness>(
    tx: &mut <H::Store as Store>::Conn,
    orders: Batch<Order>,
    State(site): State<Site<H>>,
) -> Result<BatchResults<()>, StepError> {
    for order in &orders {
        site.harness.write_business(tx, &confirmed(order.id), order.id).await.map_err(StepError::retry)?;
    }
    Ok(orders.map_each(|_| ()))
}

fn confirmed(id: i64) -> String {
    format!("confirmed-{id}")
}

/// What became of some orders.
struct Ran {
    outcomes: BTreeMap<i64, saga_core::Outcome>,
    calls: Vec<usize>,
    statistics: Statistics,
}

impl Ran {
    fn is_compensated(&self, id: i64) -> Outcome {
        let outcome = &self.outcomes[&id];
        ensure!(matches!(outcome, saga_core::Outcome::Compensated { .. }), "order {id}: {outcome:?}");
        Ok(())
    }
}

/// Runs so many orders in one worker, some of them with trouble. All but these must be completed and have their rows, and
/// these must have none.
async fn run<H: StoreHarness>(
    bench: Bench<H>,
    count: i64,
    trouble: &[(i64, Trouble)],
    settings: impl FnOnce(&mut Settings),
) -> Result<Ran, Failed> {
    let Bench { harness, store, .. } = bench;
    let Some(store) = Arc::into_inner(store) else {
        return Err(Failed("the store is still in use by the check itself".into()));
    };
    let saga: Saga<H::Store, Order> =
        Saga::named("order").input().step::<reserve_stock<H>>().step::<confirm_orders<H>>().build()?;
    let site = Site { harness: Arc::clone(&harness), calls: Arc::default(), put_off: Arc::default() };
    let builder = Runtime::builder(store).saga(&saga).state(site.clone());
    let builder = builder.settings(|all| {
        all.transactions_max = 1;
        settings(all);
    });
    let runtime = builder.start().await?;
    let trouble_of = |id| trouble.iter().find(|(troubled, _)| *troubled == id).map(|(_, trouble)| *trouble);
    let orders = (0..count).map(|id| (format!("order-{id}"), Order { id, trouble: trouble_of(id) }));
    let mut outcomes = BTreeMap::new();
    let ending = async {
        for (id, running) in (0..).zip(runtime.start_many(&saga, orders).await) {
            outcomes.insert(id, running?.outcome().await?);
        }
        Ok::<_, Failed>(())
    };
    tokio::select! {
        ended = ending => ended?,
        () = pass_time(&*harness, runtime.store()) => {}
    }
    let statistics = runtime.statistics();
    runtime.shutdown().await;
    for (id, outcome) in &outcomes {
        let is_good = !matches!(trouble_of(*id), Some(trouble) if trouble != Trouble::NotNow);
        ensure_eq!(matches!(outcome, saga_core::Outcome::Completed { .. }), is_good, "order {id}: {outcome:?}");
        for row in [format!("order-{id}:reserve-stock"), confirmed(*id)] {
            let value = harness.read_business(runtime.store(), &row).await;
            ensure_eq!(value, is_good.then_some(*id), "the row {row}");
        }
    }
    let calls = site.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Ran { outcomes, calls, statistics })
}

/// Lets the store's clock go on, where it is the harness's, so that retries fall due.
async fn pass_time<H: StoreHarness>(harness: &H, store: &H::Store) {
    const STEP: Duration = Duration::from_millis(2);
    loop {
        tokio::time::sleep(STEP).await;
        harness.pass_time(store, STEP).await;
    }
}

pub(crate) async fn one_call_writes_for_many_sagas<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let ran = run(bench, 200, &[(3, Trouble::SoldOut)], |_| ()).await?;
    ran.is_compensated(3)?;
    ensure_eq!(ran.calls.iter().sum::<usize>(), 200, "the orders in all calls");
    ensure!(ran.calls.len() <= 12, "many calls: {:?}", ran.calls);
    ensure_eq!(ran.statistics.splits, 0, "how often a batch was split");
    Ok(())
}

pub(crate) async fn an_answer_concerns_its_own_saga_only<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let ran = run(bench, 60, &[(7, Trouble::SoldOut), (8, Trouble::NotNow)], |_| ()).await?;
    ran.is_compensated(7)?;
    ensure_eq!(ran.statistics.splits, 0, "how often a batch was split: nothing was taken back");
    ensure_eq!(ran.calls.iter().sum::<usize>(), 61, "the orders in all calls: one was called again");
    Ok(())
}

pub(crate) async fn a_bad_order_is_found_by_halving<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let ran = run(bench, 100, &[(42, Trouble::BadStatement), (77, Trouble::Panics)], |_| ()).await?;
    ran.is_compensated(42)?;
    ran.is_compensated(77)?;
    ensure!(ran.statistics.splits >= 2, "{:?}", ran.statistics);
    ensure!(ran.calls.len() <= 60, "many calls: {:?}", ran.calls);
    Ok(())
}

/// A statement that would end the transaction of all is the fault of the saga that sent it, and of no other.
pub(crate) async fn an_order_that_ends_the_transaction_fails_alone<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let ran = run(bench, 20, &[(5, Trouble::EndsTransaction)], |_| ()).await?;
    let outcome = &ran.outcomes[&5];
    let is_alone = matches!(outcome, saga_core::Outcome::Stuck { .. } | saga_core::Outcome::Compensated { .. });
    ensure!(is_alone, "the order that ended the transaction: {outcome:?}");
    Ok(())
}

/// Trusted steps run without savepoints; the first failure rolls back the group, which runs again with them.
pub(crate) async fn a_trusted_batch_that_fails_runs_again_with_savepoints<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let trouble = [(1_400, Trouble::BadStatement), (1_401, Trouble::SoldOut), (1_402, Trouble::Panics)];
    let ran = run(bench, 1_500, &trouble, |settings| settings.batch_inputs_max = 64).await?;
    trouble.iter().try_for_each(|(id, _)| ran.is_compensated(*id))
}
