// rule: if-taken-output
use saga_core::{Output, Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_step};

#[saga_step(no_compensation)]
async fn pack(parcel: u64) -> Result<u64, StepError> {
    Ok(parcel)
}

#[saga_step(no_compensation)]
async fn weigh(grams: u64) -> Result<u64, StepError> {
    Ok(grams)
}

fn saga() -> SagaBuilder<MemoryStore, u64> {
    let saga = Saga::named("ship").input::<u64>().when("is-large", |order: &u64| *order > 9, |branch| branch.step::<pack>());
    saga.step_from::<weigh, _>(|_: &u64, packed: Option<Output<pack>>| packed)
}

fn main() {}
