// rule: body
use saga_core::{StepError, saga_step};

#[saga_step]
async fn charge_card(order: String) -> Result<u64, StepError> {
    Ok(order)
}

fn main() {}
