// rule: max-concurrent
use saga_core::{StepError, saga_step};

#[saga_step(no_compensation, max_concurrent = 0)]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
