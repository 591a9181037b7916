// rule: failure
use saga_core::saga_step;

struct CardDeclined;
type CardResult<T> = Result<T, CardDeclined>;

#[saga_step]
async fn charge_card(_order: String) -> CardResult<u64> {
    Err(CardDeclined)
}

fn main() {}
