// rule: input-by-reference
use saga_core::{BatchResults, Batch, StepError, memory::MemoryConn, saga_step};

#[saga_step]
async fn reserve_stock(_tx: &mut MemoryConn, orders: &Batch<String>) -> Result<BatchResults<()>, StepError> {
    Ok(orders.map_each(|_| ()))
}

fn main() {}
