// rule: name-form
use saga_core::{StepError, saga_step};

#[saga_step()]
async fn charge_carte_bleue_d_été(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
