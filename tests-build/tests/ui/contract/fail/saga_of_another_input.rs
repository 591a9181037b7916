// rule: step-input
use saga_core::{Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_step};

#[saga_step(service = "payments")]
async fn charge_card(cents: u64) -> Result<u64, StepError>;

fn saga() -> SagaBuilder<MemoryStore, String> {
    Saga::named("order").input::<String>().step::<charge_card>()
}

fn main() {}
