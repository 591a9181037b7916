// rule: unannotated-step
use saga_core::{Saga, StepError, saga::SagaBuilder, store::Store};

async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn saga<S: Store>() -> SagaBuilder<S, String> {
    Saga::named("order").input::<String>().step::<charge_card>()
}

fn main() {}
