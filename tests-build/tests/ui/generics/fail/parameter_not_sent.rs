// rule: type-parameter-bounds
use saga_core::{State, StepError, saga_step};

#[saga_step]
async fn charge_card<G>(_order: String, State(_gateway): State<G>) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
