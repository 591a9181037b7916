//! What a run takes place in: fresh stores, on a time of its own.

use saga_core::env::{Activity, during};
use saga_core::store::Store;

use super::subject::Explore;
use crate::VirtualTime;

/// How long a run may take, in real time.
const RUN_WITHIN: std::time::Duration = std::time::Duration::from_mins(2);

/// A fresh world, whose store is on the time of the run.
pub(super) async fn fresh<E: Explore>(subject: &E, time: &VirtualTime) -> Result<E::World, String> {
    let world = subject.fresh(time).await;
    is_on_time(&*subject.store(&world), time).await?;
    Ok(world)
}

/// A store with another clock would fall behind at the first jump.
pub(super) async fn is_on_time(store: &impl Store, time: &VirtualTime) -> Result<(), String> {
    if store.now().await.map_err(|error| error.to_string())? == time.now() {
        return Ok(());
    }
    Err("the store of the world has a clock of its own; open it on the time that `fresh` is given, with \
         `MemoryStore::with_environment(time.environment())` or with the option `test_clock` of its crate"
        .to_owned())
}

/// Waits for the end of a run, as long as one may take. Virtual time passes meanwhile, unless the run itself is about to do
/// something.
pub(super) async fn in_time<T>(time: &VirtualTime, run: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let environment = time.environment();
    let ended = tokio::time::timeout(RUN_WITHIN, during(&*environment, Activity::Waiting, run)).await;
    ended.unwrap_or_else(|_| Err(format!("it did not end within {RUN_WITHIN:?}")))
}
