// rule: step
use saga_core::{Saga, memory::MemoryStore, saga::SagaBuilder};

fn saga() -> SagaBuilder<MemoryStore, String> {
    Saga::named("order").input::<String>().step::<u64>()
}

fn main() {}
