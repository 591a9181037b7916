// rule: wait-default
use saga_core::{Saga, Signal, memory::MemoryStore, saga::SagaBuilder};
use std::time::Duration;

#[derive(serde::Serialize, serde::Deserialize)]
struct Approval;

impl Signal for Approval {
    const NAME: &'static str = "approval";
}

fn saga() -> SagaBuilder<MemoryStore, String> {
    Saga::named("purchase").input::<String>().wait_for::<Approval>(Duration::from_secs(9), |_| false)
}

fn main() {}
