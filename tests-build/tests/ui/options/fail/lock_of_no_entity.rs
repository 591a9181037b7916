// rule: lock-entities
use saga_core::{StepError, saga_step};

#[saga_step(lock = |account| account.clone(), no_compensation)]
async fn charge(_account: String) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
