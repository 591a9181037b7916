// rule: payload
use saga_core::{StepError, saga_step};

struct Raw;

#[saga_step]
async fn charge_card(_order: String) -> Result<Vec<Raw>, StepError> {
    Ok(vec![Raw])
}

fn main() {}
