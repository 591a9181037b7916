// rule: closure-types
use saga_core::{Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_step};

#[saga_step(no_compensation)]
async fn charge_card(_order: u64) -> Result<(), StepError> {
    Ok(())
}

fn order() -> SagaBuilder<MemoryStore, u64> {
    Saga::named("order").input::<u64>().when("is-large", |order| *order > 9, |branch| branch.step::<charge_card>())
}

fn main() {}
