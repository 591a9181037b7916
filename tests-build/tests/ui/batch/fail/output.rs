// rule: batch-output
use saga_core::{BatchResults, Batch, Output, StepError, memory::MemoryConn, saga_step};

#[saga_step]
async fn price(_order: String) -> Result<u64, StepError> {
    Ok(7)
}

#[saga_step]
async fn reserve_stock(_tx: &mut MemoryConn, orders: Batch<String>, _price: Output<price>) -> Result<BatchResults<()>, StepError> {
    Ok(orders.map_each(|_| ()))
}

fn main() {}
