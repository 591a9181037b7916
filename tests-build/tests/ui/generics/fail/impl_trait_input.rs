// rule: impl-trait
use saga_core::{StepError, saga_step};

#[saga_step]
async fn charge_card(_order: impl ToString) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
