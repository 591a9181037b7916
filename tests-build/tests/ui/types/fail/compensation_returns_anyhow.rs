// rule: failure
use saga_core::saga_compensation;

#[saga_compensation]
async fn refund_card(_order: String) -> anyhow::Result<()> {
    Ok(())
}

fn main() {}
