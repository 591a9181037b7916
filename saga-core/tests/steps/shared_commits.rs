//! Steps of several tenants in one transaction, where the settings let tenants share commits.
#![cfg(feature = "macros")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{
    Batch, BatchResults, Outcome, Output, Runtime, Saga, Settings, State, StepContext, StepError, Tenant,
    saga_compensation, saga_step,
};
use serde::{Deserialize, Serialize};

const TENANTS: u32 = 1_000;
/// The key that the saga of each tenant has.
const KEY: &str = "order";
/// This tenant's order is rejected by its last step.
const REJECTED: u32 = 3;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    tenant: u32,
}

/// The transaction of a call, and the tenants of its inputs.
type Call = (u64, Vec<u32>);

/// The calls of the steps.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Call>>>);

impl Seen {
    fn add(&self, tx: &MemoryConn, tenants: Vec<u32>) {
        self.0.lock().unwrap().push((tx.transaction(), tenants));
    }

    /// The tenants of each transaction, one for each input.
    fn transactions(&self) -> BTreeMap<u64, Vec<u32>> {
        let mut transactions: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for (transaction, tenants) in &*self.0.lock().unwrap() {
            transactions.entry(*transaction).or_default().extend(tenants);
        }
        transactions
    }
}

fn name_of(tenant: u32) -> String {
    format!("tenant-{tenant}")
}

/// Whether the key of a step is that of this tenant.
fn is_of(key: &str, tenant: u32) -> bool {
    key.starts_with(&format!("/{}/{KEY}:", name_of(tenant)))
}

#[saga_step(compensate = release)]
async fn reserve(
    tx: &mut MemoryConn,
    ctx: &StepContext,
    order: Order,
    State(seen): State<Seen>,
) -> Result<u32, StepError> {
    assert!(is_of(ctx.key(), order.tenant), "{} for tenant {}", ctx.key(), order.tenant);
    seen.add(tx, vec![order.tenant]);
    tx.add(&format!("reserved {}", order.tenant), 1)?;
    Ok(order.tenant)
}

#[saga_compensation]
async fn release(tx: &mut MemoryConn, order: Order, reserved: u32) -> Result<(), StepError> {
    assert_eq!(reserved, order.tenant, "the output of another tenant");
    Ok(tx.delete(&format!("reserved {}", order.tenant))?)
}

#[saga_step(no_compensation)]
async fn charge(tx: &mut MemoryConn, order: Order, Output(reserved): Output<reserve>) -> Result<(), StepError> {
    assert_eq!(reserved, order.tenant, "the output of another tenant");
    tx.add(&format!("charged {}", order.tenant), 1)?;
    if order.tenant == REJECTED { Err(StepError::reject("no money")) } else { Ok(()) }
}

#[saga_step(no_compensation)]
async fn collect(
    tx: &mut MemoryConn,
    orders: Batch<Order>,
    State(seen): State<Seen>,
) -> Result<BatchResults<()>, StepError> {
    for (order, key) in orders.iter().zip(orders.keys()) {
        assert!(is_of(key, order.tenant), "{key} for tenant {}", order.tenant);
        tx.add(&format!("collected {}", order.tenant), 1)?;
    }
    seen.add(tx, orders.iter().map(|order| order.tenant).collect());
    Ok(orders.map_each(|_| ()))
}

/// Starts a saga of each tenant at once, all under one key, and brings them to their ends. One transaction is under way at a time.
async fn run(
    saga: &Saga<MemoryStore, Order>,
    tenants: u32,
    change: fn(&mut Settings),
) -> (Seen, Vec<Outcome>, MemoryStore) {
    let (seen, store) = (Seen::default(), MemoryStore::new());
    let builder = Runtime::builder(store.clone()).saga(saga).state(seen.clone()).settings(|settings| {
        settings.transactions_max = 1;
        change(settings);
    });
    let runtime = builder.start().await.unwrap();
    let mut running = Vec::new();
    for tenant in 0..tenants {
        let of_tenant = runtime.tenant(Tenant::new(name_of(tenant)).unwrap());
        let saga = saga.clone();
        running.push(tokio::spawn(async move {
            of_tenant.start(&saga, KEY, Order { tenant }).await.unwrap().outcome().await.unwrap()
        }));
    }
    let mut outcomes = Vec::new();
    for running in running {
        outcomes.push(running.await.unwrap());
    }
    runtime.shutdown().await;
    (seen, outcomes, store)
}

fn share(settings: &mut Settings) {
    settings.tenants_share_commits = true;
}

fn orders() -> Saga<MemoryStore, Order> {
    Saga::named("order").input::<Order>().step::<reserve>().step::<charge>().build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tenants_make_a_thousand_commits_by_default() {
    let (seen, ..) = run(&orders(), TENANTS, |_| ()).await;
    let transactions = seen.transactions();
    assert_eq!(transactions.len(), TENANTS as usize);
    assert!(transactions.values().all(|tenants| tenants.len() == 1));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tenants_that_share_commits_make_few() {
    let (seen, ..) = run(&orders(), TENANTS, share).await;
    let commits = seen.transactions().len();
    assert!(commits <= TENANTS as usize / 10, "{commits} commits for {TENANTS} tenants");
}

/// G12: tenants that share a transaction share nothing else, though their sagas have one key.
#[tokio::test(start_paused = true)]
async fn g12_tenants_that_share_a_commit_keep_apart() {
    const FEW: u32 = 20;
    let (seen, outcomes, store) = run(&orders(), FEW, share).await;
    assert!(seen.transactions().values().any(|tenants| tenants.len() > 1), "no transaction had two tenants");
    for (tenant, outcome) in (0..).zip(outcomes) {
        let is_rejected = tenant == REJECTED;
        match &outcome {
            Outcome::Completed { .. } => assert!(!is_rejected, "tenant {tenant}"),
            Outcome::Compensated { .. } => assert!(is_rejected, "tenant {tenant}"),
            Outcome::Stuck { .. } | Outcome::Tombstone { .. } => panic!("tenant {tenant}: {outcome:?}"),
        }
        let expected = i64::from(!is_rejected);
        store.read(|table| {
            assert_eq!(table.counter(&format!("reserved {tenant}")), expected, "tenant {tenant}");
            assert_eq!(table.counter(&format!("charged {tenant}")), expected, "tenant {tenant}");
        });
    }
}

/// G12: the inputs of two tenants never come to one call of a batch step, though the calls share a transaction.
#[tokio::test(start_paused = true)]
async fn g12_a_batch_step_is_called_for_one_tenant_at_a_time() {
    const FEW: u32 = 20;
    let saga = Saga::named("collect").input::<Order>().step::<collect>().build().unwrap();
    let (seen, outcomes, store) = run(&saga, FEW, share).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Completed { .. })), "{outcomes:?}");
    for (_, tenants) in &*seen.0.lock().unwrap() {
        assert_eq!(tenants.iter().collect::<BTreeSet<_>>().len(), 1, "the tenants of one call: {tenants:?}");
    }
    assert!(seen.transactions().values().any(|tenants| tenants.len() > 1), "no transaction had two tenants");
    store.read(|table| assert!((0..FEW).all(|tenant| table.counter(&format!("collected {tenant}")) == 1)));
}
