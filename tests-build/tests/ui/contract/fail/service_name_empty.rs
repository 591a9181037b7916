// rule: service-form
use saga_core::{StepError, saga_step};

#[saga_step(service = "")]
async fn charge_card(cents: u64) -> Result<u64, StepError>;

fn main() {}
