// rule: contract-type-parameter
use saga_core::{StepError, saga_step};

#[saga_step(service = "payments")]
async fn charge_card<T: Send>(charge: T) -> Result<u64, StepError>;

fn main() {}
