// rule: input-by-reference
use saga_core::{StepError, saga_step};

#[saga_step]
async fn charge_card(_orders: &[String]) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
