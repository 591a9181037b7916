// rule: option-form, no-body
use saga_core::{StepError, saga_step};

#[saga_step(service = payments)]
async fn charge_card(cents: u64) -> Result<u64, StepError>;

fn main() {}
