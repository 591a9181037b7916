// rule: batch-return
use saga_core::{Batch, StepError, memory::MemoryConn, saga_step};

#[saga_step]
async fn reserve_stock(_tx: &mut MemoryConn, _orders: Batch<String>) -> Result<u64, StepError> {
    Ok(7)
}

fn main() {}
