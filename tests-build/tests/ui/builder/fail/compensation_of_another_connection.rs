// rule: step-connection
use saga_core::{Saga, StepError, memory::MemoryStore, saga::SagaBuilder, saga_compensation, saga_step};

#[saga_step(compensate = refund_card)]
async fn charge_card(_order: String) -> Result<u64, StepError> {
    Ok(1)
}
#[saga_compensation]
async fn refund_card(_tx: &mut Vec<u8>, _order: String) -> Result<(), StepError> {
    Ok(())
}

fn saga() -> SagaBuilder<MemoryStore, String> {
    Saga::named("order").input::<String>().step::<charge_card>()
}

fn main() {}
