// rule: three-values
use saga_core::{StepError, saga_compensation};

#[saga_compensation]
async fn refund_card(_order: String, _payment: u64, _reason: String) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
