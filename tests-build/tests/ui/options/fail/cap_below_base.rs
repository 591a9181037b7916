// rule: cap-below-base
use saga_core::{StepError, saga_step};

#[saga_step(retry(base = "10s", cap = "1s"))]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
