// rule: signal
use saga_core::{Saga, memory::MemoryStore, saga::SagaBuilder};
use std::time::Duration;

#[derive(serde::Serialize, serde::Deserialize)]
struct Approval;

fn saga() -> SagaBuilder<MemoryStore, String> {
    Saga::named("purchase").input::<String>().wait_or_reject::<Approval>(Duration::from_secs(9))
}

fn main() {}
