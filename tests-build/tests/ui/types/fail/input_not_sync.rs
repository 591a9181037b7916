// rule: payload
use saga_core::{StepError, saga_step};
use std::cell::Cell;

#[saga_step]
async fn charge_card(_order: Cell<u64>) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
