// rule: compensated-and-none
use saga_core::{StepError, saga_step};

#[saga_step(service = "payments", compensated, no_compensation)]
async fn charge_card(cents: u64) -> Result<u64, StepError>;

fn main() {}
