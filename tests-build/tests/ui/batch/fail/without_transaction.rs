// rule: batch-without-transaction
use saga_core::{BatchResults, Batch, StepError, saga_step};

#[saga_step]
async fn charge_card(orders: Batch<String>) -> Result<BatchResults<()>, StepError> {
    Ok(orders.map_each(|_| ()))
}

fn main() {}
