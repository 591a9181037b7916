// rule: unannotated-step
use saga_core::{Saga, StepError, memory::MemoryStore, saga::SagaBuilder};

async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn saga() -> SagaBuilder<MemoryStore, String> {
    Saga::named("order").input::<String>().step::<charge_card>()
}

fn main() {}
