// rule: result-step
use saga_core::{Saga, StepError, memory::MemoryStore, saga::SagaWithResult, saga_step};

#[saga_step]
async fn charge(cents: u64) -> Result<String, StepError> {
    Ok(cents.to_string())
}

fn pay() -> SagaWithResult<MemoryStore, u64, String> {
    Saga::named("pay").input::<u64>().step::<charge>().returns::<String>()
}

fn main() {}
