// rule: dyn-connection
use saga_core::{StepError, saga_step};

trait Shop {}

#[saga_step]
async fn reserve_stock(_shop: &mut dyn Shop, _order: String) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
