// rule: zero-give-up
use saga_core::{StepError, saga_step};

#[saga_step(give_up_after = "0s")]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
