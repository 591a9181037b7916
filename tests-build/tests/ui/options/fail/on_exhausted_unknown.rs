// rule: on-exhausted
use saga_core::{StepError, saga_step};

#[saga_step(retry(attempts = 3), on_exhausted = "fail")]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
