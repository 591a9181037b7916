// rule: private-type
use saga_core::{StepError, saga_step};

#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    number: u64,
}

#[saga_step]
pub async fn charge_card(order: Order) -> Result<u64, StepError> {
    Ok(order.number)
}

fn main() {}
