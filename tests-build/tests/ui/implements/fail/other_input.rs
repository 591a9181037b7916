// rule: contract-input
use saga_core::{StepError, saga_step};

mod contracts {
    #[saga_core::saga_step(service = "payments")]
    pub async fn charge_card(cents: u64) -> Result<String, saga_core::StepError>;
}

#[saga_step(implements = contracts::charge_card)]
async fn charge_card(cents: Vec<u32>) -> Result<String, StepError> {
    Ok(cents.len().to_string())
}

fn main() {}
