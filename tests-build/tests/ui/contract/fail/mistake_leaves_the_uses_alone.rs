// rule: not-async
use saga_core::{Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_step};

#[saga_step(service = "payments")]
fn charge_card(cents: u64) -> Result<u64, StepError>;

fn saga() -> SagaBuilder<MemoryStore, u64> {
    Saga::named("order").input::<u64>().step::<charge_card>()
}

fn main() {}
