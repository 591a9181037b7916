// rule: resolved
use saga_core::{StepError, saga_resolution, saga_step};

type PaymentResult = Result<u64, StepError>;

#[saga_step(resolve = find_charge)]
async fn charge_card(_order: String) -> PaymentResult {
    Ok(1)
}

#[saga_resolution]
async fn find_charge(_order: String) -> PaymentResult {
    Ok(1)
}

fn main() {}
