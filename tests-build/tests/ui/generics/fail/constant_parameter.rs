// rule: const-parameter
use saga_core::{StepError, saga_step};

#[saga_step]
async fn charge_card<const N: usize>(_order: [u8; N]) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
