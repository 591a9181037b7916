// rule: resolve-input
use saga_core::{Resolved, StepError, saga_resolution, saga_step};

#[saga_step(resolve = find_charge)]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

#[saga_resolution]
async fn find_charge(_order: u32) -> Result<Resolved<u64>, StepError> {
    Ok(Resolved::NotDone)
}

fn main() {}
