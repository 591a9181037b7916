// rule: signal
use std::time::Duration;

use saga_core::{Saga, StepError, Wait, memory::MemoryStore, saga::SagaBuilder, saga_step};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Approval {
    by: String,
}

#[saga_step]
async fn place_order(_order: String) -> Result<(), StepError> {
    Ok(())
}

fn saga() -> SagaBuilder<MemoryStore, String> {
    Saga::named("order")
        .input::<String>()
        .wait_for::<Approval>(Wait::within(Duration::from_hours(48)).or_reject())
        .step::<place_order>()
}

fn main() {}
