// rule: each-output
use saga_core::{Outputs, Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_step};

#[saga_step(no_compensation)]
async fn pack(parcel: u64) -> Result<u64, StepError> {
    Ok(parcel)
}

#[saga_step(no_compensation)]
async fn weigh(grams: u64) -> Result<u64, StepError> {
    Ok(grams)
}

fn saga() -> SagaBuilder<MemoryStore, u64> {
    let saga = Saga::named("ship").input::<u64>().for_each::<pack, _>(8, |order: &u64| vec![*order]);
    saga.step_from::<weigh, _>(|_: &u64, Outputs(packed): Outputs<pack>| packed)
}

fn main() {}
