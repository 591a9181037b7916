// rule: body
use saga_core::{Answers, Batch, StepError, memory::MemoryConn, saga_step};

#[saga_step]
async fn reserve_stock(_tx: &mut MemoryConn, orders: Batch<String>) -> Result<Answers<u64>, StepError> {
    Ok(orders.answer(|_| "seven"))
}

fn main() {}
