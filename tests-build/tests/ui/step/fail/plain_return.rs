// rule: not-a-result
use saga_core::saga_step;

#[saga_step]
async fn charge_card(_order: String) -> Vec<u64> {
    vec![1]
}

fn main() {}
