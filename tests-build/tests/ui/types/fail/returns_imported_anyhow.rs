// rule: failure
use anyhow::Result;
use saga_core::saga_step;

#[saga_step]
async fn charge_card(_order: String) -> Result<u64> {
    Ok(1)
}

fn main() {}
