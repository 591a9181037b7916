// rule: impl-trait
use saga_core::{StepError, saga_step};

#[saga_step]
async fn charge_card(_conn: &mut impl Send, _order: String) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
