// rule: choice-condition
use saga_core::{Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_step};

#[saga_step]
async fn charge_card(_order: u64) -> Result<u64, StepError> {
    Ok(1)
}

fn saga() -> SagaBuilder<MemoryStore, u64> {
    Saga::named("order").input::<u64>().when("is-large", |order: &u64| order - 9, |branch| branch.step::<charge_card>())
}

fn main() {}
