// rule: batch-locked
use saga_core::memory::MemoryConn;
use saga_core::{Batch, BatchResults, Locked, StepError, saga_step};

#[saga_step(lock = |account| saga_core::Entity::new("account", account), no_compensation)]
async fn charge(
    _tx: &mut MemoryConn,
    accounts: Batch<String>,
    _locked: Locked,
) -> Result<BatchResults<u64>, StepError> {
    Ok(accounts.map_each(|_| Ok::<u64, StepError>(1)))
}

fn main() {}
