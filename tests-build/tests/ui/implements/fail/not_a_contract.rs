// rule: not-a-contract
use saga_core::{StepError, saga_step};

#[saga_step(implements = String)]
async fn charge_card(cents: u64) -> Result<String, StepError> {
    Ok(cents.to_string())
}

fn main() {}
