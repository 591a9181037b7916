// rule: foreign-error
use anyhow::bail;
use saga_core::{StepError, saga_step};

fn ask() -> anyhow::Result<u64> {
    bail!("the gateway is away")
}

#[saga_step]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(ask()?)
}

fn main() {}
