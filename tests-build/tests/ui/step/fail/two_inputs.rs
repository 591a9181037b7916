// rule: two-inputs
use saga_core::{StepError, saga_step};

#[saga_step]
async fn charge_card(_order: String, _cents: u64) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
