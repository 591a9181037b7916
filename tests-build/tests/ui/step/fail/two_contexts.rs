// rule: two-contexts
use saga_core::{StepContext, StepError, saga_step};

#[saga_step]
async fn charge_card(_ctx: &StepContext, _again: &StepContext, _order: String) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
