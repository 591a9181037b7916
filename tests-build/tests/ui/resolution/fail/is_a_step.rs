// rule: not-a-resolution
use saga_core::{StepError, saga_step};

#[saga_step(resolve = find_charge)]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

#[saga_step]
async fn find_charge(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
