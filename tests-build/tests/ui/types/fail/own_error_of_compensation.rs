// rule: failure
use saga_core::saga_compensation;

struct CardDeclined;

#[saga_compensation]
async fn refund_card(_order: String) -> Result<(), CardDeclined> {
    Err(CardDeclined)
}

fn main() {}
