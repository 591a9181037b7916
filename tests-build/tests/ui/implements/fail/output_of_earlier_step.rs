// rule: implements-with-output
use saga_core::{Output, StepError, saga_step};

mod contracts {
    #[saga_core::saga_step(service = "payments")]
    pub async fn charge_card(cents: u64) -> Result<String, saga_core::StepError>;
}

#[saga_step(implements = contracts::charge_card)]
async fn charge_card(cents: u64, _before: Output<contracts::charge_card>) -> Result<String, StepError> {
    Ok(cents.to_string())
}

fn main() {}
