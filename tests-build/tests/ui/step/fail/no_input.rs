// rule: no-input
use saga_core::{StepError, saga_step};

#[saga_step]
async fn charge_card() -> Result<(), StepError> {
    Ok(())
}

fn main() {}
