// rule: not-a-result
use saga_core::{StepError, saga_resolution, saga_step};

#[saga_step(resolve = find_charge)]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

#[saga_resolution]
async fn find_charge(_order: String) {}

fn main() {}
