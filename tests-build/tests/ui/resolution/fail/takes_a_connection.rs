// rule: resolution-in-transaction
use saga_core::{Resolved, StepError, memory::MemoryConn, saga_resolution, saga_step};

#[saga_step(resolve = find_charge)]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

#[saga_resolution]
async fn find_charge(_tx: &mut MemoryConn, _order: String) -> Result<Resolved<u64>, StepError> {
    Ok(Resolved::NotDone)
}

fn main() {}
