// rule: contract-option
use saga_core::{StepError, saga_step};

#[saga_step(service = "payments", implements = contracts::charge_card)]
async fn charge_card(cents: u64) -> Result<u64, StepError>;

fn main() {}
