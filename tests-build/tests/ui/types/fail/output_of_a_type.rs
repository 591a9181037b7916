// rule: output-of-type
use saga_core::{Output, StepError, saga_step};

#[saga_step]
async fn ship(order: u64, Output(reserved): Output<u32>) -> Result<u64, StepError> {
    Ok(order + u64::from(reserved.pow(2)))
}

fn main() {
    let _ = ship;
}
