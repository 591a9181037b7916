//! When the maintenance task has its turns (G13).

use std::time::Duration;

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::{Expiry, Purge as _, Sagas as _};
use saga_core::{Key, Runtime, Saga, StepError, Tenant, saga_step};

/// How often a process polls.
const POLL_INTERVAL: Duration = Duration::from_hours(1);

#[saga_step(no_compensation)]
async fn count(tx: &mut MemoryConn, _number: u32) -> Result<(), StepError> {
    tx.add("counted", 1)?;
    Ok(())
}

fn counting() -> Saga<MemoryStore, u32> {
    Saga::named("counting").input().step::<count>().build().unwrap()
}

async fn process(store: &MemoryStore) -> Runtime<MemoryStore> {
    let runtime = Runtime::builder(store.clone()).saga(&counting()).settings(|settings| {
        settings.poll_interval = POLL_INTERVAL;
        settings.member_ttl = POLL_INTERVAL * 3;
        settings.lease_ttl = POLL_INTERVAL * 3;
        settings.reply_timeout = POLL_INTERVAL;
    });
    runtime.start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_process_that_lives_shorter_than_one_poll_interval_purges() {
    let (store, tenant) = (MemoryStore::new(), Tenant::default());
    let key = Key::from_stored("c-1").unwrap();
    let first = process(&store).await;
    first.start(&counting(), "c-1", 1).await.unwrap().outcome().await.unwrap();
    first.shutdown().await;
    assert!(store.set_expiry(&tenant, &key, Some(&Expiry::deleted_in(Duration::ZERO))).await.unwrap());

    let second = process(&store).await;
    tokio::time::sleep(POLL_INTERVAL / 100).await;
    second.shutdown().await;
    assert!(store.saga(&tenant, &key).await.unwrap().is_none(), "the saga was not purged");
}
