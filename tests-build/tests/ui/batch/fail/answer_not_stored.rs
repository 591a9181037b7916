// rule: payload
use saga_core::{BatchResults, Batch, StepError, memory::MemoryConn, saga_step};

struct Reservation;

#[saga_step]
async fn reserve_stock(_tx: &mut MemoryConn, orders: Batch<String>) -> Result<BatchResults<Reservation>, StepError> {
    Ok(orders.map_each(|_| Reservation))
}

fn main() {}
