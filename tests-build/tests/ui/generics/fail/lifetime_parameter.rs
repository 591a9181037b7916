// rule: lifetime
use saga_core::{StepError, saga_step};

#[saga_step]
async fn charge_card<'a>(_order: std::borrow::Cow<'a, str>) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
