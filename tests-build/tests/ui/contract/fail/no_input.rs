// rule: no-input
use saga_core::{StepError, saga_step};

#[saga_step(service = "payments")]
async fn charge_card() -> Result<u64, StepError>;

fn main() {}
