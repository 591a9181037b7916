// rule: batch-return
use saga_core::{Batch, StepError, memory::MemoryConn, saga_step};

type StepResult<T> = Result<T, StepError>;

#[saga_step]
async fn reserve_stock(_tx: &mut MemoryConn, _orders: Batch<String>) -> StepResult<u64> {
    Ok(7)
}

fn main() {}
