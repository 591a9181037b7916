// rule: batch-locked
use saga_core::memory::MemoryConn;
use saga_core::{Batch, BatchResults, Entity, Locked, StepError, saga_step};

#[saga_step(lock = |account| Entity::new("account", account), no_compensation)]
async fn charge(
    _tx: &mut MemoryConn,
    accounts: Batch<String>,
    _locked: Locked,
) -> Result<BatchResults<u64>, StepError> {
    Ok(accounts.map_each(|_| Ok(1)))
}

fn main() {}
