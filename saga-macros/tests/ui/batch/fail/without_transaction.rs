// rule: batch-without-transaction
use saga_core::{Answers, Batch, StepError, saga_step};

#[saga_step]
async fn charge_card(orders: Batch<String>) -> Result<Answers<()>, StepError> {
    Ok(orders.answer(|_| ()))
}

fn main() {}
