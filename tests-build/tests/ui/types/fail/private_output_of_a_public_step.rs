// rule: private-type
use saga_core::{StepError, saga_step};

#[derive(serde::Serialize, serde::Deserialize)]
struct Receipt {
    number: u64,
}

#[saga_step]
pub async fn charge_card(order: u64) -> Result<Receipt, StepError> {
    Ok(Receipt { number: order })
}

fn main() {}
