// rule: list-items
use saga_core::{Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_step};

#[saga_step(no_compensation)]
async fn pack(parcel: u64) -> Result<u64, StepError> {
    Ok(parcel)
}

fn saga() -> SagaBuilder<MemoryStore, String> {
    Saga::named("ship").input::<String>().for_each::<pack, _>(8, |order: &String| vec![order.clone()])
}

fn main() {}
