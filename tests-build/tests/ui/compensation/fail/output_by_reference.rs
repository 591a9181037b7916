// rule: input-by-reference
use saga_core::{StepError, saga_compensation};

#[saga_compensation]
async fn refund_card(_order: String, _payment: &u64) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
