// rule: state-clone
use saga_core::{State, StepError, saga_step};

struct Gateway;

#[saga_step]
async fn charge_card(_order: String, State(_gateway): State<Gateway>) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
