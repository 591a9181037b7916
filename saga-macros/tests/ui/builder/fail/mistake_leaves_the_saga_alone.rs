// rule: two-inputs
use saga_core::{Saga, StepError, saga::SagaBuilder, saga_step, store::Store};

#[saga_step]
async fn charge_card(_order: String, _cents: u64) -> Result<u64, StepError> {
    Ok(1)
}

fn saga<S: Store>() -> SagaBuilder<S, String> {
    Saga::named("order").input::<String>().step::<charge_card>()
}

fn main() {}
