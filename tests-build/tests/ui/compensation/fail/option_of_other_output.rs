// rule: undo-output
use saga_core::{StepError, saga_compensation, saga_step};

#[saga_step(compensate = refund_card)]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

#[saga_compensation]
async fn refund_card(_order: String, _payment: Option<String>) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
