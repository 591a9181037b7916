// rule: payload
use saga_core::{StepError, saga_step};

struct Raw;
type ShopResult<T> = Result<T, StepError>;

#[saga_step]
async fn charge_card(_order: String) -> ShopResult<Raw> {
    Ok(Raw)
}

fn main() {}
