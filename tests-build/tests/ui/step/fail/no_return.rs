// rule: not-a-result
use saga_core::saga_step;

#[saga_step]
async fn charge_card(_order: String) {}

fn main() {}
