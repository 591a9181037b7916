// rule: name-form
use saga_core::{StepError, saga_step};

#[saga_step(name = "charge-the-card-of-the-customer-of-the-order")]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
