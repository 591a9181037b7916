// rule: resolve-output
use saga_core::{Resolved, StepError, saga_resolution, saga_step};

#[saga_step(resolve = find_charge)]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

#[saga_resolution]
async fn find_charge(_order: String) -> Result<Resolved<String>, StepError> {
    Ok(Resolved::NotDone)
}

fn main() {}
