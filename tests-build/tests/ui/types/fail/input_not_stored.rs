// rule: payload
use saga_core::{StepError, saga_step};

struct Raw;

#[saga_step]
async fn charge_card(_order: Raw) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
