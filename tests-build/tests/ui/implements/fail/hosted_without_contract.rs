// rule: hosted
use saga_core::{Service, StepError, memory::MemoryStore, saga_step, service::ServiceBuilder};

#[saga_step]
async fn charge_card(cents: u64) -> Result<u64, StepError> {
    Ok(cents)
}

fn payments() -> ServiceBuilder<MemoryStore> {
    Service::named("payments").host::<charge_card>()
}

fn main() {}
