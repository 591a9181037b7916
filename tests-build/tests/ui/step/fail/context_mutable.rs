// rule: context-form
use saga_core::{StepContext, StepError, saga_step};

#[saga_step]
async fn charge_card(_ctx: &mut StepContext, _order: String) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
