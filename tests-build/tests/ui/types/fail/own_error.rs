// rule: failure
use saga_core::saga_step;

struct CardDeclined;

#[saga_step]
async fn charge_card(_order: String) -> Result<u64, CardDeclined> {
    Err(CardDeclined)
}

fn main() {}
