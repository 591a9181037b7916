// rule: read-by-reference
use saga_core::{Output, StepError, saga_step};

#[saga_step]
async fn charge_card(order: String) -> Result<String, StepError> {
    Ok(order)
}
#[saga_step]
async fn confirm_order(_order: String, _payment: &Output<charge_card>) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
