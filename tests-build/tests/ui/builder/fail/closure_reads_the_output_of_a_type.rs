// rule: output-step
use saga_core::{Output, Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_step};

#[saga_step(no_compensation)]
async fn charge_card(_order: u64) -> Result<u32, StepError> {
    Ok(1)
}

#[saga_step(no_compensation)]
async fn ship(_order: u64) -> Result<(), StepError> {
    Ok(())
}

fn saga() -> SagaBuilder<MemoryStore, u64> {
    Saga::named("order")
        .input::<u64>()
        .step::<charge_card>()
        .step_from::<ship, _>(|order: &u64, Output(charged): Output<u32>| order + u64::from(charged))
}

fn main() {}
