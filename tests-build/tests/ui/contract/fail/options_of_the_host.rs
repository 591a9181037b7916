// rule: contract-option
use saga_core::{StepError, saga_step};

#[saga_step(service = "payments", compensate = refund_card, retry(attempts = 3))]
async fn charge_card(cents: u64) -> Result<u64, StepError>;

fn main() {}
