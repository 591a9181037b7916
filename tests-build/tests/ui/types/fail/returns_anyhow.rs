// rule: failure
use saga_core::saga_step;

#[saga_step]
async fn charge_card(_order: String) -> anyhow::Result<u64> {
    Ok(1)
}

fn main() {}
