// rule: locked-without-lock
use saga_core::{Locked, StepError, saga_step};

#[saga_step(no_compensation)]
async fn charge(_account: String, _locked: Locked) -> Result<u64, StepError> {
    Ok(1)
}

fn main() {}
