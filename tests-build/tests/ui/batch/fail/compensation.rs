// rule: batch-in-compensation
use saga_core::{Batch, StepError, memory::MemoryConn, saga_compensation};

#[saga_compensation]
async fn release_stock(_tx: &mut MemoryConn, _orders: Batch<String>) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
