// rule: step-connection
use saga_core::{Saga, StepError, saga::SagaBuilder, saga_step, store::Store};

#[saga_step]
async fn charge_card(_tx: &mut Vec<u8>, _order: String) -> Result<u64, StepError> {
    Ok(1)
}

fn saga<S: Store<Conn = String>>() -> SagaBuilder<S, String> {
    Saga::named("order").input::<String>().step::<charge_card>()
}

fn main() {}
