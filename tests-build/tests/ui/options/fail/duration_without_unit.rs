// rule: duration
use saga_core::{StepError, saga_step};

#[saga_step(timeout = "10")]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
