// rule: compensation-returns-value
use saga_core::{StepError, saga_compensation};

#[saga_compensation]
async fn refund_card(_order: String, payment: u64) -> Result<u64, StepError> {
    Ok(payment)
}

fn main() {}
