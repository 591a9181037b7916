// rule: unknown-option
use saga_core::{StepError, saga_compensation};

#[saga_compensation(name = "refund")]
async fn refund_card(_order: String) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
