// rule: not-a-result
use saga_core::saga_compensation;

#[saga_compensation]
async fn refund_card(_order: String) {}

fn main() {}
