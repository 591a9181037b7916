//! Several handlers behind one savepoint, or behind none: who fails among them fails alone, and costs the others another
//! call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Outcome, Runtime, Saga, State, StepError, saga_step};

/// How often the payment of each order was called, and how often it still fails.
#[derive(Clone, Default)]
struct Bank {
    calls: Arc<Mutex<BTreeMap<u32, u32>>>,
    failures: Arc<Mutex<BTreeMap<u32, u32>>>,
}

impl Bank {
    fn calls(&self, orders: std::ops::Range<u32>) -> Vec<u32> {
        let calls = self.calls.lock().unwrap();
        orders.map(|order| calls.get(&order).copied().unwrap_or_default()).collect()
    }
}

#[saga_step(no_compensation)]
async fn reserve(tx: &mut MemoryConn, order: u32) -> Result<(), StepError> {
    tx.add(&format!("reserve-{order}"), 1)?;
    Ok(())
}

#[saga_step(no_compensation, retry(attempts = 3, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn charge(tx: &mut MemoryConn, order: u32, State(bank): State<Bank>) -> Result<(), StepError> {
    *bank.calls.lock().unwrap().entry(order).or_default() += 1;
    tx.add(&format!("charge-{order}"), 1)?;
    match bank.failures.lock().unwrap().get_mut(&order) {
        Some(failures) if *failures > 0 => {
            *failures -= 1;
            Err(StepError::retry("the bank does not answer"))
        }
        _ => Ok(()),
    }
}

#[saga_step(no_compensation)]
async fn confirm(tx: &mut MemoryConn, order: u32) -> Result<(), StepError> {
    tx.add(&format!("confirm-{order}"), 1)?;
    Ok(())
}

struct Shop {
    runtime: Runtime<MemoryStore>,
    saga: Saga<MemoryStore, u32>,
    bank: Bank,
}

impl Shop {
    async fn open() -> Self {
        let saga = Saga::named("create-order").input::<u32>().step::<reserve>().step::<charge>().step::<confirm>();
        let (saga, bank) = (saga.build().unwrap(), Bank::default());
        let builder = Runtime::builder(MemoryStore::new()).saga(&saga).state(bank.clone());
        let runtime = builder.settings(|settings| settings.transactions_max = 1).start().await.unwrap();
        Self { runtime, saga, bank }
    }

    /// Brings these orders to their end, all in one transaction but for what fails. Each step of each took effect once.
    async fn sell(&self, orders: std::ops::Range<u32>) {
        let asked = orders.clone().map(|order| (format!("order-{order}"), order));
        for running in self.runtime.start_many(&self.saga, asked).await {
            let outcome = running.unwrap().outcome().await.unwrap();
            assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
        }
        self.runtime.store().read(|table| {
            for name in orders.flat_map(|order| ["reserve", "charge", "confirm"].map(|step| format!("{step}-{order}")))
            {
                assert_eq!(table.counter(&name), 1, "{name}");
            }
        });
    }

    fn fail(&self, order: u32, times: u32) {
        self.bank.failures.lock().unwrap().insert(order, times);
    }
}

/// Nothing is known of the steps, so four share a savepoint.
#[tokio::test]
async fn g1_who_fails_behind_a_shared_savepoint_fails_alone() {
    let shop = Shop::open().await;
    shop.fail(2, 1);
    shop.sell(0..8).await;
    // The two before it were taken back with it.
    assert_eq!(shop.bank.calls(0..8), [2, 2, 2, 1, 1, 1, 1, 1]);
    assert_eq!(shop.runtime.statistics().failures, 1);
    shop.runtime.shutdown().await;
}

#[tokio::test]
async fn all_who_fail_behind_one_savepoint_are_found() {
    let shop = Shop::open().await;
    for order in [0, 1, 3] {
        shop.fail(order, 2);
    }
    shop.sell(0..4).await;
    assert_eq!(shop.runtime.statistics().failures, 6, "each has its own attempts and no others");
    shop.runtime.shutdown().await;
}

/// What never fails has no savepoint; its first failure rolls the transaction back, which runs again with them.
#[tokio::test]
async fn g1_who_fails_without_a_savepoint_fails_alone() {
    let shop = Shop::open().await;
    for first in (0..1_000).step_by(20) {
        shop.sell(first..first + 20).await;
    }
    assert_eq!(shop.bank.calls(0..1_000), [1; 1_000]);
    shop.fail(1_002, 2);
    shop.sell(1_000..1_008).await;
    let calls = shop.bank.calls(1_000..1_008);
    assert_eq!(calls[2], 3, "it failed in the first run, in the second, and no more: {calls:?}");
    assert!(calls.iter().all(|calls| (1..=3).contains(calls)), "{calls:?}");
    assert_eq!(shop.runtime.statistics().failures, 1, "the run that was rolled back does not count");
    shop.runtime.shutdown().await;
}
