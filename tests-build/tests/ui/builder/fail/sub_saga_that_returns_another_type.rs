// rule: sub-saga-output
use saga_core::{Saga, StepError, SubSaga, memory::MemoryStore, saga::SagaBuilder, saga_step};

#[saga_step]
async fn ship(parcel: u64) -> Result<u64, StepError> {
    Ok(parcel)
}

struct Shipping;

impl SubSaga for Shipping {
    const NAME: &'static str = "shipping";
    type Input = u64;
    type Output = String;
}

fn order(shipping: &Saga<MemoryStore, u64, u64>) -> SagaBuilder<MemoryStore, u64> {
    Saga::named("order").input::<u64>().sub_saga::<Shipping>(shipping)
}

fn main() {}
