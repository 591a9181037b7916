// rule: each-output
use saga_core::{Each, Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_step};

#[saga_step(no_compensation)]
async fn pack(parcel: u64) -> Result<u64, StepError> {
    Ok(parcel)
}

#[saga_step(no_compensation)]
async fn weigh(grams: u64) -> Result<u64, StepError> {
    Ok(grams)
}

fn saga() -> SagaBuilder<MemoryStore, u64> {
    let saga = Saga::named("ship").input::<u64>().for_each_with::<pack>(8, |order| vec![*order]);
    saga.step_after::<weigh, Each<pack>>(|_, packed| packed)
}

fn main() {}
