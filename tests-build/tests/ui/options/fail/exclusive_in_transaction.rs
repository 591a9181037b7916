// rule: exclusive-in-transaction
use saga_core::memory::MemoryConn;
use saga_core::{StepError, saga_step};

#[saga_step(exclusive, no_compensation)]
async fn reserve(_tx: &mut MemoryConn, _order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
