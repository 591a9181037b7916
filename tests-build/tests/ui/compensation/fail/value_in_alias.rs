// rule: compensation-alias
use saga_core::{StepError, saga_compensation};

type ShopResult<T> = Result<T, StepError>;

#[saga_compensation]
async fn refund_card(_order: String) -> ShopResult<u64> {
    Ok(1)
}

fn main() {}
