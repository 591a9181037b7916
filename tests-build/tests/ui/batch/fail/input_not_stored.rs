// rule: payload
use saga_core::{BatchResults, Batch, StepError, memory::MemoryConn, saga_step};

struct Order;

#[saga_step]
async fn reserve_stock(_tx: &mut MemoryConn, orders: Batch<Order>) -> Result<BatchResults<()>, StepError> {
    Ok(orders.map_each(|_| ()))
}

fn main() {}
