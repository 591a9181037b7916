// rule: compensated
use saga_core::{StepError, saga_compensation, saga_step};

mod contracts {
    #[saga_core::saga_step(service = "payments")]
    pub async fn charge_card(cents: u64) -> Result<String, saga_core::StepError>;
}

#[saga_step(implements = contracts::charge_card, compensate = refund_card)]
async fn charge_card(cents: u64) -> Result<String, StepError> {
    Ok(cents.to_string())
}

#[saga_compensation]
async fn refund_card(_cents: u64) -> Result<(), StepError> {
    Ok(())
}

fn main() {}
