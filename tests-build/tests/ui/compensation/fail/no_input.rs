// rule: no-input
use saga_core::{StepError, saga_compensation};

#[saga_compensation]
async fn refund_card() -> Result<(), StepError> {
    Ok(())
}

fn main() {}
