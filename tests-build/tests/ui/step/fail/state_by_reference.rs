// rule: read-by-reference
use saga_core::{State, StepError, saga_step};

#[saga_step]
async fn charge_card(_order: String, _gateway: &State<u32>) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
