// rule: qualifier
use saga_core::{StepError, saga_step};

#[saga_step]
async unsafe fn charge_card(_order: String) -> Result<u32, StepError> {
    Ok(1)
}

fn main() {}
