// rule: option-form
use saga_core::{StepError, saga_step};

#[saga_step(name = "charge" timeout = "10s")]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
