// rule: unknown-option
use saga_core::{Output, StepError, saga_step};

#[saga_step(tiemout = "10s")]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

#[saga_step]
async fn confirm_order(_order: String, Output(_payment): Output<charge_card>) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
