// rule: not-a-contract
use saga_core::{StepError, saga_step};

#[saga_step]
async fn charge(cents: u64) -> Result<u64, StepError> {
    Ok(cents)
}

#[saga_step(implements = charge)]
async fn charge_card(cents: u64) -> Result<u64, StepError> {
    Ok(cents)
}

fn main() {}
