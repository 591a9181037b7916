// rule: batch-context
use saga_core::{BatchResults, Batch, StepContext, StepError, memory::MemoryConn, saga_step};

#[saga_step]
async fn reserve_stock(_tx: &mut MemoryConn, _ctx: &StepContext, orders: Batch<String>) -> Result<BatchResults<()>, StepError> {
    Ok(orders.map_each(|_| ()))
}

fn main() {}
