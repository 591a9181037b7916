// rule: called-contract
use saga_core::{StepError, saga_step};

#[saga_step(service = "payments")]
async fn charge_card(cents: u64) -> Result<u64, StepError>;

async fn order() -> Result<u64, StepError> {
    charge_card(4).await
}

fn main() {}
