// rule: compensate-and-none
use saga_core::{StepError, saga_step};

#[saga_core::saga_compensation]
async fn refund_card(_order: String) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(compensate = refund_card, no_compensation)]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
