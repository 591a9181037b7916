// pass: a step and its compensation take the lock of the step, of one entity, of an array or of a list
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Batch, BatchResults, Entity, Locked, Saga, StepError, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Charge {
    account: String,
    order: u32,
}

#[saga_step(compensate = refund, lock = |charge| Entity::new("account", &charge.account))]
async fn charge(_charge: Charge, locked: Locked) -> Result<u64, StepError> {
    Ok(locked.token())
}

#[saga_compensation]
async fn refund(_charge: Charge, _token: u64, locked: Locked) -> Result<(), StepError> {
    let _entities = locked.entities();
    Ok(())
}

fn both(charge: &Charge) -> [Entity; 2] {
    [Entity::new("account", &charge.account), Entity::new("order", charge.order)]
}

#[saga_step(no_compensation, lock = both)]
async fn book(_tx: &mut MemoryConn, _charge: Charge) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation, lock = |charge: &Charge| vec![Entity::new("order", charge.order)])]
async fn note(_tx: &mut MemoryConn, charges: Batch<Charge>) -> Result<BatchResults<u64>, StepError> {
    Ok(charges.map_each_with(|ctx, _charge| Ok::<u64, StepError>(ctx.locked()[0].token)))
}

#[test]
fn the_saga_is_built() {
    let saga: Result<Saga<MemoryStore, Charge>, _> =
        Saga::named("charges").input::<Charge>().step::<charge>().step::<book>().step::<note>().build();
    assert!(saga.is_ok());
}
