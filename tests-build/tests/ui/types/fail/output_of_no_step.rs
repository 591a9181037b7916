// rule: output-step
use saga_core::{Output, StepError, saga_step};

struct Payment;

#[saga_step]
async fn confirm_order(_order: String, _payment: Output<Payment>) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
