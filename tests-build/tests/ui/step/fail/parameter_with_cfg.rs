// rule: parameter-cfg
use saga_core::{StepContext, StepError, saga_step};

#[saga_step]
async fn reserve_stock(#[cfg(all())] _ctx: &StepContext, _order: u32) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
