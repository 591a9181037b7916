// rule: unannotated-resolution
use saga_core::{Resolved, StepError, saga_step};

#[saga_step(resolve = find_charge)]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

async fn find_charge(_order: String) -> Result<Resolved<u64>, StepError> {
    Ok(Resolved::NotDone)
}

fn main() {}
