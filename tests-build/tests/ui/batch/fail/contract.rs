// rule: batch-in-contract
use saga_core::{Batch, StepError, saga_step};

#[saga_step(service = "payments")]
async fn charge_card(charges: Batch<String>) -> Result<u64, StepError>;

fn main() {}
