// rule: not-a-result
use saga_core::saga_step;

#[saga_step(service = "payments")]
async fn charge_card(cents: u64) -> u64;

fn main() {}
