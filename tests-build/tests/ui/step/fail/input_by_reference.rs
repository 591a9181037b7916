// rule: input-by-reference
use saga_core::{StepError, saga_step};

struct Order;

#[saga_step]
async fn charge_card(_order: &Order) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
