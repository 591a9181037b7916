// rule: payload
use saga_core::{StepError, saga_step};

struct Charge;

#[saga_step(service = "payments")]
async fn charge_card(charge: Charge) -> Result<u64, StepError>;

fn main() {}
