// rule: not-async
use saga_core::{StepError, saga_step};

#[saga_step(service = "payments")]
fn charge_card(cents: u64) -> Result<u64, StepError>;

fn main() {}
