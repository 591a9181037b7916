// rule: result-type
use saga_core::{Saga, SagaError, StepError, memory::MemoryStore, saga_step};

#[saga_step]
async fn charge(cents: u64) -> Result<String, StepError> {
    Ok(cents.to_string())
}

fn pay() -> Result<Saga<MemoryStore, u64, u64>, SagaError> {
    Saga::named("pay").input::<u64>().step::<charge>().returns::<charge>().build()
}

fn main() {}
