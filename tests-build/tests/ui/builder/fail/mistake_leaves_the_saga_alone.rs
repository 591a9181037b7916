// rule: two-inputs
use saga_core::{Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_step};

#[saga_step]
async fn charge_card(_order: String, _cents: u64) -> Result<u64, StepError> {
    Ok(1)
}

fn saga() -> SagaBuilder<MemoryStore, String> {
    Saga::named("order").input::<String>().step::<charge_card>()
}

fn main() {}
