// rule: output-step
use saga_core::{Output, Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_step};

async fn reserve(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

#[saga_step(no_compensation)]
async fn ship(_order: String, Output(_reserved): Output<reserve>) -> Result<(), StepError> {
    Ok(())
}

fn saga() -> SagaBuilder<MemoryStore, String> {
    Saga::named("order").input::<String>().step::<ship>()
}

fn main() {}
