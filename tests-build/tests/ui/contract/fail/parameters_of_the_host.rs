// rule: contract-parameter
use saga_core::{State, StepContext, StepError, saga_step};

#[saga_step(service = "payments")]
async fn charge_card(ctx: &StepContext, cents: u64, gateway: State<u8>) -> Result<u64, StepError>;

fn main() {}
